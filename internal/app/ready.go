package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/services/scheduler"
)

// readyLimit bounds what one dependency may take to answer.
const readyLimit = 2 * time.Second

// ready asks every dependency how it is.
func (h *process) ready(ctx context.Context) api.Readiness {
	out := api.Readiness{Ready: true, Checks: map[string]api.Check{}}
	checks := map[string]func(context.Context) (map[string]any, error){
		"nats":      h.natsReady,
		"memory":    h.memoryReady,
		"stages":    h.stagesReady,
		"recovered": h.caughtUp.Ready,
		"intact":    h.intact,
	}
	if h.auditLog != nil {
		checks["audit"] = h.auditReady
	}
	if len(h.governors) > 0 {
		checks["llm"] = h.llmReady
	}
	for name, ask := range checks {
		check := checked(ctx, ask)
		out.Checks[name] = check
		out.Ready = out.Ready && check.OK
	}
	return out
}

// natsReady also counts the dead letters, and names the servers of a cluster that
// are away. They want an operator's eye and are no reason to send requests
// elsewhere.
func (h *process) natsReady(ctx context.Context) (map[string]any, error) {
	if err := h.streams.Ready(ctx); err != nil {
		return nil, err
	}
	deadLetters, err := h.runtime.Letters().Count(ctx)
	details := map[string]any{"dead_letters": deadLetters}
	if away := h.streams.Away(); len(away) > 0 {
		details["away"] = away
	}
	return details, err
}

// auditReady also shows the sequence in AUDIT up to which the audit log has each effect.
func (h *process) auditReady(ctx context.Context) (map[string]any, error) {
	if err := h.auditLog.Ping(ctx); err != nil {
		return nil, err
	}
	last, err := h.auditLog.LastSequence(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{api.DetailSequence: last}, nil
}

func checked(ctx context.Context, ask func(context.Context) (map[string]any, error)) api.Check {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
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

// memoryReady also shows what the store holds, as of the last count that was in time.
func (h *process) memoryReady(ctx context.Context) (map[string]any, error) {
	if err := h.store.Ping(ctx); err != nil {
		return nil, plain(h.cfg, err)
	}
	spaces := h.store.Spaces()
	details := map[string]any{"vectors": spaces.Served.Embedder.String()}
	if spaces.Next != nil {
		details["vectors_building"] = spaces.Next.Embedder.String()
	}
	stats, err := h.count(ctx)
	if stats == nil {
		return details, err
	}
	details["schema"], details["scopes"], details["episodes"], details["facts"] = stats.Schema, stats.Scopes, stats.Episodes, stats.Facts
	if details["vectors_pending"] = stats.VectorsPending; spaces.Next != nil {
		details["vectors_building_pending"] = stats.VectorsBuilding
	}
	if stats.VectorsRefused > 0 {
		details["vectors_refused"] = stats.VectorsRefused
		details["vectors_refused_why"], err = h.refusals(ctx)
	}
	return details, err
}

// count is what the store holds, as of the last count that was in time; nil where none
// was.
func (h *process) count(ctx context.Context) (*store.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	stats, err := h.store.Stats(ctx)
	if err == nil {
		h.counted.Store(&stats)
	} else if ctx.Err() == nil {
		return nil, err
	}
	return h.counted.Load(), nil
}

// refusalsShown bounds the refused texts that are shown.
const refusalsShown = 3

// refusals are some of the texts that the embedder refused: whose they are, and why.
func (h *process) refusals(ctx context.Context) ([]string, error) {
	refused, err := h.store.RefusedVectors(ctx, refusalsShown)
	lines := make([]string, len(refused))
	for i, v := range refused {
		lines[i] = fmt.Sprintf("%s %s: %s", v.Ref.Scope, v.Ref.ID, v.Reason)
	}
	return lines, err
}

// stagesReady is an error while a stage has work and passes nothing. A single scope
// that stands still, and work that waits for another attempt, are shown and are no
// reason to send requests elsewhere.
func (h *process) stagesReady(context.Context) (map[string]any, error) {
	held := 0
	var failing []string
	for _, s := range h.runtime.Stats() {
		held += s.InFlight
		if s.Failing {
			failing = append(failing, s.Stage)
		}
	}
	stalls := h.tracker.Stalls()
	details := map[string]any{"in_flight": held, "failing": failing, "delayed": stalls.Delayed}
	if stalls.ScopeCount > 0 {
		details["stalled_scopes"], details["stalled_scope_count"] = stalls.Scopes, stalls.ScopeCount
	}
	if h.llmPaused() { // its work waits, as it should
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

// track watches the progress of the stages until ctx ends.
func (h *process) track(ctx context.Context) {
	ticker := time.NewTicker(trackEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		progress, err := h.runtime.Progress(ctx)
		if err != nil {
			h.log.Debug("ask for progress", "error", err) // the broker's check says it
		}
		if h.scheduler != nil {
			progress = append(progress, overdue(h.scheduler.Late()))
		}
		h.tracker.Observe(progress)
	}
}

// overdue tells of the scopes whose ticks are overdue, wherever they are held up.
func overdue(late []scheduler.Late) pipeline.Progress {
	p := pipeline.Progress{Service: "scheduler", Stage: "scheduler-overdue"}
	for _, l := range late {
		p.Scopes = append(p.Scopes, pipeline.BusyScope{Scope: l.Scope.String(), Since: l.Since})
	}
	return p
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
