package recovery

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"palimpsest/internal/cursor"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/poll"
	"palimpsest/internal/store"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

const (
	// healAgain is the pause after a failed attempt to repair the memory store.
	healAgain = time.Second
	// healPoll is how often cursors are compared with the streams while the store is
	// behind.
	healPoll = 50 * time.Millisecond
)

// CaughtUp says whether the memory store has all that the streams held when the
// process started, or when the store was last repaired.
type CaughtUp struct{ done atomic.Bool }

// Set changes it.
func (c *CaughtUp) Set(done bool) { c.done.Store(done) }

// Ready returns an error while the store is behind.
func (c *CaughtUp) Ready(context.Context) (map[string]any, error) {
	if !c.done.Load() {
		return nil, errors.New("the memory store is being brought up to the streams")
	}
	return nil, nil //nolint:nilnil // there is nothing to tell
}

// Healing keeps the memory store of a running process complete: it has all that the
// streams hold.
type Healing struct {
	Repair

	Store store.Store
	// Ingest and Consolidator are services of this process; nil where another
	// process runs them.
	Ingest       *ingest.Service
	Consolidator *consolidator.Service
	// Answers reports whether this process answers requests from the store.
	Answers  bool
	CaughtUp *CaughtUp

	ends ends
}

// remedy is the part of the rows that this process recovers.
func (h *Healing) remedy() (r store.Remedy) {
	if h.Ingest != nil {
		r.Episodes = h.Repair.StoreAgain
	}
	if h.Consolidator != nil {
		r.Effects = h.Repair.ApplyAgain
	}
	return r
}

// lost is closed while the memory store may lack what it acknowledged; nil where
// it cannot.
func (h *Healing) lost() <-chan struct{} {
	if m, ok := h.Store.(store.Mender); ok {
		return m.Lost()
	}
	return nil
}

// Mend returns once the memory store is complete, or ctx has ended. It recovers
// the rows that this process is responsible for and waits for the other processes.
func (h *Healing) Mend(ctx context.Context) {
	m, ok := h.Store.(store.Mender)
	if !ok {
		return
	}
	_ = poll.Until(ctx, healAgain, func() (bool, error) { // ctx has ended
		err := m.Mend(ctx, h.remedy())
		if err != nil && ctx.Err() == nil {
			h.Logger.Error("repair the memory store", "error", err)
		}
		return err == nil, nil
	})
}

// Run calls ready once the store has all that the streams hold now, and repairs it
// whenever it has lost rows, until ctx ends.
func (h *Healing) Run(ctx context.Context, ready func()) {
	if h.Await(ctx) {
		ready()
	}
	h.Keep(ctx)
}

// Keep repairs the memory store whenever it has lost rows, until ctx ends.
func (h *Healing) Keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.lost():
		}
		h.CaughtUp.Set(false)
		if h.Consolidator != nil {
			h.Consolidator.Forget()
		}
		h.Mend(ctx)
		h.Await(ctx)
	}
}

// Await returns true once the store has all that the streams hold now, and false
// where ctx ends before.
func (h *Healing) Await(ctx context.Context) bool {
	if h.Ingest == nil && h.Consolidator == nil && !h.Answers {
		h.CaughtUp.Set(true) // others tell
		return true
	}
	began, told := time.Now(), false
	return nil == poll.Until(ctx, healPoll, func() (bool, error) {
		behind, err := h.behindStreams(ctx)
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err == nil && !behind:
			h.CaughtUp.Set(true)
			h.Logger.Info("the memory store has caught up with the streams", "took", time.Since(began))
			return true, nil
		case !told:
			told = true
			h.Logger.Info("the memory store is behind the streams", "error", err)
		}
		return false, nil
	})
}

// lowest is the sequence below which readers of all partitions have read everything.
func lowest(ctx context.Context, in cursor.Store, partitions []pipeline.Partition) (uint64, error) {
	cursors, err := in.ReadCursors(ctx, pipeline.Readers(partitions)...)
	if err != nil {
		return 0, err
	}
	least := slices.MinFunc(cursors, func(a, b cursor.Cursor) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return least.Sequence, nil
}
