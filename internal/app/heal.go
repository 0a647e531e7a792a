package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

// healAgain is how long after a start that left something behind it is tried
// again.
const healAgain = 30 * time.Second

// healing is what a start found of the store against the streams. Until it is
// whole, readiness says what is wrong.
type healing struct {
	mu    sync.Mutex
	done  bool
	err   error
	found map[string]any
}

func (h *healing) set(found map[string]any, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done, h.err, h.found = true, err, found
}

// begin says that what was found holds no longer.
func (h *healing) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done = false
}

func (h *healing) ready(context.Context) (map[string]any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.done {
		return nil, errors.New("the memory store is being compared with the streams")
	}
	return h.found, h.err
}

// serve heals what is the process's to heal and then runs its services: a store
// that was restored from an older copy must have its ordinals and revisions back
// before anything new gets one. Then it calls ready. What cannot be healed keeps
// nothing else from its work; /readyz says what it is.
//
// Others may run, and heal, at the same time, without a leader:
//
// Ordinals. Whoever runs ingest stores again what the store lacks before it
// stores anything new, in stream order and from the beginning. However many do so
// at once, the first to store an episode has stored, or found, all before it of
// its scope, so each gets the ordinal that it had; the others find it there.
//
// Revisions. AUDIT hands them out, not the store: an append names the newest
// effect that its scope's row knows, and is refused where there is a newer one.
// So a consolidator that was not healed can commit nothing wrong, and an effect
// that two of them apply is applied once. Where a scope goes on counting, though,
// is judged by what was said, which must be back before: a consolidator waits
// for that.
//
// Everybody else only reads the store, or proposes what a consolidator judges
// again.
func (h *house) serve(ctx context.Context, ready func()) error {
	if err := h.putBack(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	before, err := h.runtime.Letters().Newest(ctx)
	if err != nil {
		h.log.Error("look up dead letters", "error", err) // none is dropped
	}
	healed := h.heal(ctx)
	h.catchUp(ctx, before)
	ready()
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { h.keepWhole(ctx, healed) })
	beside.Go(func() { h.track(ctx) })
	return h.runtime.Run(ctx, h.services...)
}

// putBack returns once the store lacks nothing that was said, as far as that is
// this process's to put back or to wait for.
func (h *house) putBack(ctx context.Context) error {
	for {
		h.mend(ctx)
		err := h.recover(ctx)
		if err == nil {
			err = h.awaitSaid(ctx)
		}
		if !errors.Is(err, store.ErrLost) || ctx.Err() != nil {
			return err
		}
	}
}

// restore builds a memory store anew whose file is missing, or whose log was cut,
// where there are streams to build it from. Where they do not have all that it takes,
// or lost some, the store that there is begins, and healing says what is missing.
func (h *house) restore(ctx context.Context) error {
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
	out, err := rebuild(ctx, h.cfg, h.log, newProgress(io.Discard), rebuildMode{})
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

// recover stores again what was said and the store lacks. Without it nothing may
// be stored, for it would take the place of what is missing.
func (h *house) recover(ctx context.Context) error {
	if h.ingest == nil {
		return nil
	}
	began := time.Now()
	count := func(ctx context.Context) error { return h.cure().count(ctx, h.ingest, h.store) }
	stored, err := h.ingest.Recover(ctx, pastOf(h.streams.JetStream()), h.store, count)
	if err != nil {
		return fmt.Errorf("recover episodes: %w", err)
	}
	if stored > 0 {
		h.log.Warn("the memory store was behind what was said", "episodes", stored, "took", time.Since(began))
	}
	return nil
}

// saidAgain is how often a consolidator looks whether what was said is back.
const saidAgain = 250 * time.Millisecond

// awaitSaid returns once the store lacks nothing that was said, which whoever
// runs ingest stores again.
func (h *house) awaitSaid(ctx context.Context) error {
	if h.consolidator == nil {
		return nil
	}
	said, err := ingest.New(h.cfg.Ingest, ingest.Deps{Episodes: h.store, Vectors: h.store, Embedder: h.embedder})
	if err != nil {
		return err
	}
	past := pastOf(h.streams.JetStream())
	ticker := time.NewTicker(saidAgain)
	defer ticker.Stop()
	for told := false; ; {
		lacks, err := said.Lacks(ctx, past, h.store)
		switch {
		case err != nil:
			return err
		case !lacks:
			return nil
		case !told:
			told = true
			h.log.Warn("waiting until ingest has stored again what was said")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pastOf is what ingest was handed.
func pastOf(js jetstream.JetStream) *pipeline.Past {
	consumers := make([]string, ingest.Partitions)
	for p := range consumers {
		consumers[p] = ingest.Consumer(p)
	}
	return pipeline.NewPast(js, consumers...)
}

func (h *house) heal(ctx context.Context) error {
	if h.consolidator == nil {
		h.healing.set(nil, nil)
		return nil
	}
	began := time.Now()
	found, err := h.consolidator.Heal(ctx, broker.NewJournal(h.streams.JetStream()))
	h.healing.set(map[string]any{
		"scopes": found.Scopes, "healed": found.Behind, "ahead_of_audit": found.Ahead, "failed": found.Failed,
	}, err)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		h.log.Error("heal", "scopes", found.Scopes, "healed", found.Behind, "ahead", found.Ahead, "failed", found.Failed, "error", err)
	case found.Behind > 0:
		h.log.Warn("the memory store was behind the audit stream", "scopes", found.Scopes, "healed", found.Behind, "took", time.Since(began))
	}
	if err != nil {
		return fmt.Errorf("heal: %w", err)
	}
	return nil
}

// catchUp copies into the audit log what it lacks of AUDIT. What cannot be is
// left in the stream, and history is read there. before is the newest dead letter
// before the memory store was healed.
func (h *house) catchUp(ctx context.Context, before uint64) {
	if h.consolidator == nil {
		return
	}
	began := time.Now()
	last, err := h.auditLog.LastSequence(ctx)
	copied := 0
	if err == nil {
		copied, err = h.consolidator.CatchUp(ctx, broker.NewJournal(h.streams.JetStream()), last)
	}
	unburied, failed := h.unbury(ctx, before)
	copied, err = copied+unburied, cmp.Or(err, failed)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		h.log.Error("catch up the audit log", "behind", last, "copied", copied, "error", err)
	case copied > 0:
		h.log.Info("the audit log was behind the audit stream", "effects", copied, "took", time.Since(began))
	}
}
