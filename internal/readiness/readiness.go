// Package readiness checks the dependencies of a process, and reports whether it can
// serve requests.
package readiness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/llm"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/services/scheduler"
)

// limit bounds what one dependency may take to answer.
const limit = 2 * time.Second

// Check returns an error if a dependency is not ready, and details of it.
type Check func(context.Context) (map[string]any, error)

// Process is a process with its dependencies.
type Process struct {
	Broker interface {
		Ready(ctx context.Context) error
		// Away names servers that are away, though enough are left.
		Away() []string
	}
	Runtime *pipeline.Runtime
	Tracker *pipeline.Tracker
	Store   store.Store
	Log     audit.Log               // nil where no service of the process works on it
	Late    func() []scheduler.Late // the scopes whose ticks are overdue; nil without a scheduler
	Models  func() []*llm.Governor  // the language models in use
	More    map[string]Check        // further checks, by their names
	Plain   func(error) error       // puts an error in the user's terms
	Logger  *slog.Logger

	counted atomic.Pointer[store.Stats] // what the store last held; nil before it was counted
}

// Ready asks every dependency.
func (p *Process) Ready(ctx context.Context) api.Readiness {
	out := api.Readiness{Ready: true, Checks: map[string]api.Check{}}
	checks := map[string]Check{"nats": p.broker, "memory": p.memory, "stages": p.stages}
	for name, check := range p.More {
		checks[name] = check
	}
	if p.Log != nil {
		checks["audit"] = p.audit
	}
	if len(p.Models()) > 0 {
		checks["llm"] = p.llm
	}
	for name, ask := range checks {
		check := checked(ctx, ask)
		out.Checks[name] = check
		out.Ready = out.Ready && check.OK
	}
	return out
}

func (p *Process) llm(context.Context) (map[string]any, error) {
	var models []llm.State
	for _, g := range p.Models() {
		models = append(models, g.State())
	}
	slices.SortFunc(models, func(a, b llm.State) int { return cmp.Compare(a.Model, b.Model) })
	return map[string]any{"models": models}, nil
}

// llmPaused reports whether a model is not asked for a while.
func (p *Process) llmPaused() bool {
	return slices.ContainsFunc(p.Models(), func(g *llm.Governor) bool { return g.State().Paused })
}

// broker also counts the dead letters, and names the servers of a cluster that
// are away. They want an operator's eye and are no reason to send requests
// elsewhere.
func (p *Process) broker(ctx context.Context) (map[string]any, error) {
	if err := p.Broker.Ready(ctx); err != nil {
		return nil, err
	}
	deadLetters, err := p.Runtime.Letters().Count(ctx)
	details := map[string]any{"dead_letters": deadLetters}
	if away := p.Broker.Away(); len(away) > 0 {
		details["away"] = away
	}
	return details, err
}

// audit also shows the sequence in AUDIT up to which the audit log has each effect.
func (p *Process) audit(ctx context.Context) (map[string]any, error) {
	if err := p.Log.Ping(ctx); err != nil {
		return nil, err
	}
	last, err := p.Log.LastSequence(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{api.DetailSequence: last}, nil
}

func checked(ctx context.Context, ask Check) api.Check {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	details, err := ask(ctx)
	check := api.Check{OK: err == nil, Details: details, LatencyMS: float64(time.Since(start).Microseconds()) / 1000}
	if err != nil {
		check.Error = err.Error()
	}
	return check
}

// countLimit is how long readiness waits for the store to count its rows. A large
// store takes longer, and is no less ready.
const countLimit = 500 * time.Millisecond

// memory also shows what the store holds, as of the last count that was in time.
func (p *Process) memory(ctx context.Context) (map[string]any, error) {
	if err := p.Store.Ping(ctx); err != nil {
		return nil, p.Plain(err)
	}
	spaces := p.Store.Spaces()
	details := map[string]any{"vectors": spaces.Served.Embedder.String()}
	if spaces.Next != nil {
		details["vectors_building"] = spaces.Next.Embedder.String()
	}
	stats, err := p.count(ctx)
	if stats == nil {
		return details, err
	}
	details["schema"], details["scopes"], details["episodes"], details["facts"] = stats.Schema, stats.Scopes, stats.Episodes, stats.Facts
	if details["vectors_pending"] = stats.VectorsPending; spaces.Next != nil {
		details["vectors_building_pending"] = stats.VectorsBuilding
	}
	if stats.VectorsRefused > 0 {
		details["vectors_refused"] = stats.VectorsRefused
		details["vectors_refused_why"], err = p.refusals(ctx)
	}
	return details, err
}

// count is what the store holds, as of the last count that was in time; nil where none
// was.
func (p *Process) count(ctx context.Context) (*store.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	stats, err := p.Store.Stats(ctx)
	if err == nil {
		p.counted.Store(&stats)
	} else if ctx.Err() == nil {
		return nil, err
	}
	return p.counted.Load(), nil
}

// refusalsShown bounds the refused texts that are shown.
const refusalsShown = 3

// refusals are some of the texts that the embedder refused: whose they are, and why.
func (p *Process) refusals(ctx context.Context) ([]string, error) {
	refused, err := p.Store.RefusedVectors(ctx, refusalsShown)
	lines := make([]string, len(refused))
	for i, v := range refused {
		lines[i] = fmt.Sprintf("%s %s: %s", v.Ref.Scope, v.Ref.ID, v.Reason)
	}
	return lines, err
}

// stages is an error while a stage has work and passes nothing. A single scope
// that stands still, and work that waits for another attempt, are shown and are no
// reason to send requests elsewhere.
func (p *Process) stages(context.Context) (map[string]any, error) {
	held := 0
	var failing []string
	for _, s := range p.Runtime.Stats() {
		held += s.InFlight
		if s.Failing {
			failing = append(failing, s.Stage)
		}
	}
	stalls := p.Tracker.Stalls()
	details := map[string]any{"in_flight": held, "failing": failing, "delayed": stalls.Delayed}
	if stalls.ScopeCount > 0 {
		details["stalled_scopes"], details["stalled_scope_count"] = stalls.Scopes, stalls.ScopeCount
	}
	if p.llmPaused() { // its work waits, as it should
		stalls.Stages = slices.DeleteFunc(slices.Clone(stalls.Stages), func(s string) bool { return strings.HasSuffix(s, "-model") })
	}
	if len(stalls.Stages) > 0 {
		return details, fmt.Errorf("%w: %s", errStalled, strings.Join(stalls.Stages, ", "))
	}
	return details, nil
}

// errStalled: stages have work and have passed nothing for [pipeline.StallAfter].
var errStalled = errors.New("stages stand still")

// trackEvery is how often the stages are asked how far they are.
const trackEvery = 3 * time.Second

// Track watches the progress of the stages until ctx ends.
func (p *Process) Track(ctx context.Context) {
	ticker := time.NewTicker(trackEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		progress, err := p.Runtime.Progress(ctx)
		if err != nil {
			p.Logger.Debug("read the progress of stages", "error", err) // the broker's check says it
		}
		if p.Late != nil {
			progress = append(progress, overdue(p.Late()))
		}
		p.Tracker.Observe(progress)
	}
}

// overdue tells of the scopes whose ticks are overdue, wherever they are held up.
func overdue(late []scheduler.Late) pipeline.Progress {
	out := pipeline.Progress{Service: "scheduler", Stage: "scheduler-overdue"}
	for _, l := range late {
		out.Scopes = append(out.Scopes, pipeline.BusyScope{Scope: l.Scope.String(), Since: l.Since})
	}
	return out
}
