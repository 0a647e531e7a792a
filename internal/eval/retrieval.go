package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/poll"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// System is an empty Palimpsest that runs.
type System struct {
	Client *client.Client
	// Store, Embedder and Search are what its search works with; legs alone are
	// asked through them.
	Store interface {
		retrieval.Store
		store.Health
	}
	Embedder embed.Embedder
	Search   retrieval.Config
	// Part begins a part of the work of about total units.
	Part func(name string, total uint64) (step func(n int), end func())
}

// Retrieval records the turns of a set, one user a conversation, and asks its
// questions: of each leg alone, of the whole for episodes, and for facts and
// episodes together, where a fact counts as the episodes that it comes from.
func Retrieval(ctx context.Context, set Set, s System) (Report, error) {
	r := Report{Set: set.Name, Turns: len(set.Turns)}
	if err := s.record(ctx, set.Turns); err != nil {
		return r, err
	}
	engine, err := retrieval.New(s.Search, s.Store, embed.Only(s.Embedder))
	if err != nil {
		return r, err
	}
	for _, leg := range engine.Legs() {
		run, err := s.run(ctx, leg, set.Questions, func(ctx context.Context, q Question) ([]string, error) {
			return s.askLeg(ctx, engine, leg, q)
		})
		if r.Runs = append(r.Runs, run); err != nil {
			return r, err
		}
	}
	for _, whole := range []struct {
		name  string
		types []string
	}{{"episodes", []string{"episode"}}, {"together", nil}} {
		run, err := s.run(ctx, whole.name, set.Questions, func(ctx context.Context, q Question) ([]string, error) {
			return s.ask(ctx, whole.types, q)
		})
		if r.Runs = append(r.Runs, run); err != nil {
			return r, err
		}
	}
	return r, nil
}

// maxRecord is how many messages one request brings.
const maxRecord = 100

func (s System) record(ctx context.Context, turns []Turn) error {
	total := uint64(len(turns))
	step, end := s.Part("record", total)
	defer end()
	for len(turns) > 0 {
		first, n := turns[0], 1
		for n < min(len(turns), maxRecord) && turns[n].Conversation == first.Conversation && turns[n].Session == first.Session {
			n++
		}
		r := api.Record{Scope: api.Scope{User: first.Conversation, Session: "s" + strconv.Itoa(first.Session)}}
		for _, t := range turns[:n] {
			r.Messages = append(r.Messages, t.message())
		}
		if _, err := s.Client.Record(ctx, r, ""); err != nil {
			return fmt.Errorf("record %s: %w", first.ID, err)
		}
		step(n)
		turns = turns[n:]
	}
	return s.settle(ctx, total)
}

// message is the turn as a publisher brings it: who speaks is metadata.
func (t Turn) message() api.Message {
	m := api.Message{ID: t.ID, Role: "user", Content: t.Text, Metadata: map[string]any{"speaker": t.Speaker}}
	if t.Caption != "" {
		m.Content = strings.TrimSpace(m.Content + "\n" + t.Caption)
	}
	if t.Speaker == "assistant" {
		m.Role = t.Speaker
	}
	if !t.Time.IsZero() {
		m.Timestamp, _ = json.Marshal(t.Time) // an instant always has a form
	}
	return m
}

const (
	// settleLimit bounds how long the pipeline may stand still.
	settleLimit = time.Minute
	settlePause = 50 * time.Millisecond
	// turnRule takes facts from every episode.
	turnRule = "turn"
)

// settle waits until as many turns as total are stored, consolidated and embedded.
func (s System) settle(ctx context.Context, total uint64) error {
	last, since := uint64(0), time.Now()
	return poll.Until(ctx, settlePause, func() (bool, error) {
		left, err := s.pending(ctx, total)
		if err != nil || left == 0 {
			return true, err
		}
		if left != last {
			last, since = left, time.Now()
		}
		if time.Since(since) > settleLimit {
			return true, errors.New("record: the pipeline makes no progress")
		}
		return false, nil
	})
}

func (s System) pending(ctx context.Context, total uint64) (uint64, error) {
	stats, err := s.Store.Stats(ctx)
	if err != nil {
		return 0, err
	}
	ledger, err := s.Client.Ledger(ctx, scope.Selector{All: true}, false)
	if err != nil {
		return 0, err
	}
	left := stats.VectorsPending + total
	for _, a := range ledger.Totals {
		if a.Rule == turnRule {
			left -= min(left, a.Accepted-a.Pending)
		}
	}
	return left, nil
}

func (s System) run(ctx context.Context, name string, questions []Question, ask func(context.Context, Question) ([]string, error)) (Run, error) {
	step, end := s.Part("ask "+name, uint64(len(questions)))
	defer end()
	run := Run{Name: name, Categories: map[string]Figures{}}
	took := make([]time.Duration, 0, len(questions))
	for _, q := range questions {
		began := time.Now()
		ranked, err := ask(ctx, q)
		if err != nil {
			return run, fmt.Errorf("ask %s, question %s: %w", name, q.ID, err)
		}
		took = append(took, time.Since(began))
		f := measure(q.Evidence, ranked)
		run.All.add(f)
		if q.Category != "" {
			sum := run.Categories[q.Category]
			sum.add(f)
			run.Categories[q.Category] = sum
		}
		step(1)
	}
	run.All = run.All.mean()
	for name, sum := range run.Categories {
		run.Categories[name] = sum.mean()
	}
	run.times(took)
	return run, nil
}

// limit is how many answers a question asks for.
func (q Question) limit() int { return min(1000, max(depth, len(q.Evidence))) }

func (s System) askLeg(ctx context.Context, engine *retrieval.Engine, leg string, q Question) ([]string, error) {
	user := q.Conversation
	asked := retrieval.Query{
		Scope: scope.Selector{Project: scope.DefaultProject, User: &user}, Text: q.Text, Limit: q.limit(), Episodes: true,
	}
	hits, err := engine.Leg(ctx, leg, asked)
	ids := make([]string, 0, len(hits))
	for _, h := range hits {
		ids = append(ids, h.Episode.ID)
	}
	return ids, err
}

func (s System) ask(ctx context.Context, types []string, q Question) ([]string, error) {
	user := q.Conversation
	asked := api.Search{Selector: api.Selector{User: &user}, Text: q.Text, Limit: q.limit(), Types: types}
	if q.Now != nil {
		asked.Now = &api.Instant{Time: *q.Now}
	}
	found, err := s.Client.Search(ctx, asked)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, h := range found.Results {
		switch {
		case h.Fact != nil:
			ids = append(ids, h.Fact.SourceEpisodeIDs...)
		case h.Episode.User != q.Conversation:
			return nil, fmt.Errorf("episode %s of %s is in the answer", h.Episode.ID, h.Episode.User)
		default:
			ids = append(ids, h.ID)
		}
	}
	return slices.Clip(ids), nil
}
