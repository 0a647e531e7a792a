package app

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"palimpsest/internal/recovery"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
	"palimpsest/services/consolidator"
)

// catchUp says whether the memory store has all that the streams held when the
// process started, or when the store was last mended.
type catchUp struct{ done atomic.Bool }

func (r *catchUp) ready(context.Context) (map[string]any, error) {
	if !r.done.Load() {
		return nil, errors.New("the memory store is being brought up to the streams")
	}
	return nil, nil //nolint:nilnil // there is nothing to tell
}

// serve runs the services, and calls ready once the memory store has all that the
// streams held at the start. A store that lacks anything, because its process died
// or because it was restored from an older copy, is brought up to the streams by the
// readers that fill it at all times: each goes on from its cursor in the store.
//
// Others may run, and do the same, at the same time, without a leader:
//
// Ordinals. Every reader that reads a partition of EPISODES in order, from a place
// below which all is stored, gives each episode the same ordinal.
//
// Revisions. AUDIT hands them out, not the store: an append names the newest effect
// that its scope's row knows, and is refused where there is a newer one. So a
// consolidator on a store that is behind can commit nothing wrong, and an effect
// that two of them apply is applied once.
func (h *process) serve(ctx context.Context, ready func()) error {
	h.mend(ctx)
	err := await(ctx, h.log, "memory", h.cfg.Memory, func() error {
		if err := h.countDropped(ctx); err != nil {
			return err
		}
		return h.applyDropped(ctx)
	})
	if err != nil && ctx.Err() == nil {
		return err
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { h.track(ctx) })
	beside.Go(func() {
		if h.awaitRecovery(ctx) {
			ready()
		}
		h.keepWhole(ctx)
	})
	return h.runtime.Run(ctx, h.services...)
}

// recoveryPoll is how often cursors are compared with the streams while the store
// is behind.
const recoveryPoll = 50 * time.Millisecond

// awaitRecovery returns true once the store has all that the streams hold now, and
// false where ctx ends before.
func (h *process) awaitRecovery(ctx context.Context) bool {
	if h.ingest == nil && h.consolidator == nil && !h.target.answers() {
		h.caughtUp.done.Store(true) // others tell
		return true
	}
	ticker := time.NewTicker(recoveryPoll)
	defer ticker.Stop()
	for began, told := time.Now(), false; ; {
		behind, err := h.behindStreams(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && !behind:
			h.caughtUp.done.Store(true)
			h.log.Info("the memory store is up to the streams", "took", time.Since(began))
			return true
		case !told:
			told = true
			h.log.Info("the memory store is behind the streams", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}

// restore builds a memory store anew whose file is missing, or whose log was cut,
// where there are streams to build it from. Where they do not have all that it takes,
// or lost some, the store that there is begins, and readiness says what is missing.
func (h *process) restore(ctx context.Context) error {
	if !h.cfg.local() {
		return nil
	}
	if err := writable(h.cfg.Data); err != nil || h.cfg.Memory != backendFile {
		return err
	}
	path, why := h.cfg.dataPath(memoryFile), ""
	switch {
	case absent(path):
		why = "it is missing"
	case sqlite.Torn(path):
		why = "its log was cut"
	}
	if _, err := os.Stat(h.cfg.dataPath(natsDir)); err != nil || why == "" {
		return nil //nolint:nilerr // there is nothing to build, or nothing to build it from
	}
	began := time.Now()
	h.log.Warn("the memory store is built anew from the streams", "because", why)
	out, err := rebuild(ctx, h.cfg, h.log, terminal.NewProgress(io.Discard), RebuildMode{})
	gap := (*consolidator.GapError)(nil)
	switch {
	case errors.As(err, &gap), errors.Is(err, consolidator.ErrAhead), errors.As(err, new(*recovery.LossError)):
		h.log.Error("the memory store cannot be built anew", "error", err)
	case err != nil:
		return err
	default:
		h.log.Warn("the memory store was built anew", "episodes", out.Episodes, "effects", out.Effects, "scopes", out.Scopes,
			"took", time.Since(began))
	}
	return nil
}
