package app

import (
	"context"
	"errors"
	"net"
	"time"

	"palimpsest/pkg/api"
)

// readyLimit bounds what one dependency may take to answer.
const readyLimit = 2 * time.Second

// ready asks every dependency how it is.
func (h *house) ready(ctx context.Context) api.Readiness {
	out := api.Readiness{Ready: true, Checks: map[string]api.Check{}}
	checks := map[string]func(context.Context) (map[string]any, error){
		"nats":   h.natsReady,
		"memory": h.memoryReady,
		"stages": h.stagesReady,
		"healed": h.healing.ready,
	}
	if h.auditLog != nil {
		checks["audit"] = func(ctx context.Context) (map[string]any, error) { return nil, h.auditLog.Ping(ctx) }
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
func (h *house) natsReady(ctx context.Context) (map[string]any, error) {
	if err := h.streams.Ready(ctx); err != nil {
		return nil, err
	}
	letters, err := h.runtime.Letters().Count(ctx)
	details := map[string]any{"dead_letters": letters}
	if away := h.streams.Away(); len(away) > 0 {
		details["away"] = away
	}
	return details, err
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

func (h *house) memoryReady(ctx context.Context) (map[string]any, error) {
	if err := h.store.Ping(ctx); err != nil {
		return nil, err
	}
	stats, err := h.store.Stats(ctx)
	return map[string]any{
		"schema": stats.Schema, "scopes": stats.Scopes, "episodes": stats.Episodes, "facts": stats.Facts,
		"vectors_pending": stats.VectorsPending,
	}, err
}

// stagesReady tells what the stages hold; a stage through which nothing gets is
// shown, and is the fault of a dependency that is shown as well.
func (h *house) stagesReady(context.Context) (map[string]any, error) {
	held := 0
	var failing []string
	for _, s := range h.runtime.Stats() {
		held += s.InFlight
		if s.Failing {
			failing = append(failing, s.Stage)
		}
	}
	return map[string]any{"in_flight": held, "failing": failing}, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
