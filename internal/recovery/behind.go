package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"palimpsest/internal/cursor"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

// ends are where the streams ended when they were first looked at.
type ends struct {
	mu       sync.Mutex
	episodes *uint64
	effects  *uint64
}

// end is where a stream ended then.
func (t *ends) end(ctx context.Context, target **uint64, of *pipeline.Replay) (uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *target == nil {
		end, err := of.End(ctx)
		if err != nil {
			return 0, err
		}
		*target = &end.Sequence
	}
	return **target, nil
}

// behindStreams reports whether the store lacks anything that the streams held
// when it was first called.
func (h *Healing) behindStreams(ctx context.Context) (bool, error) {
	streams := []struct {
		target     **uint64
		replay     *pipeline.Replay
		partitions []pipeline.Partition
		end        uint64
	}{
		{target: &h.ends.episodes, replay: h.Repair.Episodes, partitions: ingest.Partitions()},
		{target: &h.ends.effects, replay: h.Repair.Effects, partitions: consolidator.Partitions()},
	}
	for i, s := range streams { // before the wait for one of them lets the other grow
		var err error
		if streams[i].end, err = h.ends.end(ctx, s.target, s.replay); err != nil {
			return false, err
		}
	}
	for _, s := range streams {
		if behind, err := h.behind(ctx, s.replay, s.partitions, s.end); behind || err != nil {
			return behind, err
		}
	}
	return false, nil
}

// behind reports whether a stream holds anything up to end that a reader of partitions
// has yet to read.
func (h *Healing) behind(ctx context.Context, of *pipeline.Replay, partitions []pipeline.Partition, end uint64) (bool, error) {
	cursors, err := h.Store.ReadCursors(ctx, pipeline.Readers(partitions)...)
	if err != nil {
		return false, err
	}
	for i, p := range partitions {
		if unread, err := of.Unread(ctx, p, cursors[i].Sequence, end); unread || err != nil {
			return unread, err
		}
	}
	return false, nil
}

// Storing reports whether episodes of a fact scope were in their stream when the
// process started, and are not yet stored.
func (h *Healing) Storing(ctx context.Context, fact scope.Scope) (bool, error) {
	end, err := h.ends.end(ctx, &h.ends.episodes, h.Repair.Episodes)
	if err != nil {
		return false, err
	}
	partition := ingest.Partitions()[fact.Partition(events.Partitions)]
	return h.behind(ctx, h.Repair.Episodes, []pipeline.Partition{partition}, end)
}

// Begin returns once the store is complete, as far as the streams hold it or held it:
// messages that they have dropped are counted and applied from the audit log.
func (h *Healing) Begin(ctx context.Context) error {
	h.Mend(ctx)
	if err := h.CountDropped(ctx); err != nil {
		return err
	}
	return h.ApplyDropped(ctx)
}

// CountDropped sets where each scope goes on counting, if EPISODES has dropped
// messages that the store has not read: it was restored from a copy that is older
// than all that is left.
func (h *Healing) CountDropped(ctx context.Context) error {
	if h.Ingest == nil {
		return nil
	}
	all, err := h.Repair.Episodes.Extent(ctx)
	if err != nil || all.First <= 1 {
		return err
	}
	cursors, err := h.Store.ReadCursors(ctx, pipeline.Readers(ingest.Partitions())...)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(cursors, func(c cursor.Cursor) bool { return c.Sequence+1 >= all.First }) {
		return nil
	}
	h.Logger.Warn("EPISODES has dropped messages that the memory store has not read", "begins_at", all.First)
	if err := h.Repair.Count(ctx, h.Ingest, h.Store); err != nil {
		return fmt.Errorf("count dropped episodes: %w", err)
	}
	return nil
}

// ApplyDropped applies the effects that only the audit log has, if AUDIT has dropped effects that
// the store has not read: it was restored from a copy that is older than all that is
// left.
func (h *Healing) ApplyDropped(ctx context.Context) error {
	if h.Consolidator == nil {
		return nil
	}
	all, err := h.Repair.Effects.Extent(ctx)
	if err != nil || all.First <= 1 {
		return err
	}
	read, err := lowest(ctx, h.Store, consolidator.Partitions())
	if err != nil || read+1 >= all.First {
		return err
	}
	h.Logger.Warn("AUDIT has dropped effects that the memory store has not read", "begins_at", all.First, "read_up_to", read)
	applied, err := h.Consolidator.ApplyDropped(ctx, all.First)
	h.Logger.Warn("effects were applied from the audit log", "effects", applied, "error", err)
	if errors.As(err, new(*consolidator.GapError)) {
		return nil // the scope is named where its next effect is buried
	}
	return err
}

// AdoptEpisodes returns where to begin a partition that an earlier version read with
// a durable consumer.
func (h *Healing) AdoptEpisodes(ctx context.Context, p pipeline.Partition) (uint64, error) {
	return h.Repair.Episodes.Adopt(ctx, p, func(e *pipeline.Entry) (bool, bool, error) {
		return h.Ingest.Has(ctx, h.Store, e)
	})
}

// AdoptEffects does the same for AUDIT.
func (h *Healing) AdoptEffects(ctx context.Context, p pipeline.Partition) (uint64, error) {
	has := h.Consolidator.Applied
	if p.Reader != consolidator.Projector {
		has = h.Consolidator.Logged
	}
	return h.Repair.Effects.Adopt(ctx, p, func(e *pipeline.Entry) (bool, bool, error) { return has(ctx, e) })
}
