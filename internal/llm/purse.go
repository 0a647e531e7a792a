package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"palimpsest/pkg/scope"
)

// Spend is what calls cost.
type Spend struct {
	Calls   int     `json:"calls"`
	Input   int     `json:"input_tokens"`
	Output  int     `json:"output_tokens"`
	Dollars float64 `json:"dollars,omitempty"`
}

// Plus is the sum of two.
func (s Spend) Plus(t Spend) Spend {
	return Spend{s.Calls + t.Calls, s.Input + t.Input, s.Output + t.Output, s.Dollars + t.Dollars}
}

// Purse keeps what projects spend in a day, which is written 2006-01-02.
type Purse interface {
	Spent(ctx context.Context, project, day string) (Spend, error)
	Add(ctx context.Context, project, day string, s Spend) error
}

// Replies keeps bytes under a key of a fact scope until they expire; erasing the
// scope removes them. A memory store is one.
type Replies interface {
	Cached(ctx context.Context, fact scope.Scope, key string) ([]byte, error)
	PutCached(ctx context.Context, fact scope.Scope, key string, value []byte, expires time.Time) error
}

// spend is what a call cost; nothing where the endpoint charged nothing.
func (g *Governor) spend(reply Reply, err error) Spend {
	if err != nil && reply.InputTokens+reply.OutputTokens == 0 {
		return Spend{}
	}
	return Spend{Calls: 1, Input: reply.InputTokens, Output: reply.OutputTokens, Dollars: g.limits.Dollars(reply)}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// afford refuses a project that has spent what it may on this day.
func (g *Governor) afford(ctx context.Context, project string) error {
	if g.limits.DailyTokens == 0 && g.limits.DailyDollars == 0 {
		return nil
	}
	now := g.now()
	spent, err := g.purse.Spent(ctx, project, day(now))
	if err != nil {
		return fmt.Errorf("llm: read the spent tokens: %w", err)
	}
	if over(spent.Input+spent.Output, g.limits.DailyTokens) || over(spent.Dollars, g.limits.DailyDollars) {
		midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		return &PausedError{After: min(midnight.Sub(now), g.limits.BackoffMost), Err: ErrDailyLimit}
	}
	return nil
}

func over[N int | float64](spent, limit N) bool { return limit > 0 && spent >= limit }

// pocket is a purse in memory.
type pocket struct {
	mu    sync.Mutex
	spent map[string]Spend
}

// Spent implements [Purse].
func (p *pocket) Spent(_ context.Context, project, day string) (Spend, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent[day+" "+project], nil
}

// Add implements [Purse].
func (p *pocket) Add(_ context.Context, project, day string, s Spend) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spent == nil {
		p.spent = map[string]Spend{}
	}
	key := day + " " + project
	p.spent[key] = p.spent[key].Plus(s)
	return nil
}

// NewPurse returns a purse that survives the process. Two processes that spend at
// the same moment may count one of the calls; a limit is exceeded by that much.
func NewPurse(kept Replies) Purse { return &purse{kept: kept} }

type purse struct {
	mu   sync.Mutex
	kept Replies
}

// purseAgent is the agent whose fact scope the sums of a project lie in.
const purseAgent = "palimpsest:llm"

const keepSpent = 48 * time.Hour

// Spent implements [Purse].
func (p *purse) Spent(ctx context.Context, project, day string) (s Spend, err error) {
	raw, err := p.kept.Cached(ctx, scope.Scope{Project: project, Agent: purseAgent}, "spent "+day)
	if err != nil || raw == nil {
		return Spend{}, err
	}
	return s, json.Unmarshal(raw, &s)
}

// Add implements [Purse].
func (p *purse) Add(ctx context.Context, project, day string, s Spend) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, err := p.Spent(ctx, project, day)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(before.Plus(s))
	if err != nil {
		return err
	}
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return err
	}
	return p.kept.PutCached(ctx, scope.Scope{Project: project, Agent: purseAgent}, "spent "+day, raw, at.Add(keepSpent))
}
