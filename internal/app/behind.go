package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/cursor"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

// episodesOf and effectsOf are the streams from end to end.
func episodesOf(js jetstream.JetStream) *pipeline.Replay {
	return pipeline.NewReplay(js, topology.StreamEpisodes, "ingest")
}

func effectsOf(js jetstream.JetStream) *pipeline.Replay {
	return pipeline.NewReplay(js, topology.StreamAudit, "consolidator")
}

// targets are where the streams ended when they were first looked at.
type targets struct {
	mu       sync.Mutex
	episodes *uint64
	effects  *uint64
}

// end is where a stream ended then.
func (t *targets) end(ctx context.Context, target **uint64, of *pipeline.Replay) (uint64, error) {
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
func (h *process) behindStreams(ctx context.Context) (bool, error) {
	streams := []struct {
		target     **uint64
		replay     *pipeline.Replay
		partitions []pipeline.Partition
		end        uint64
	}{
		{target: &h.targets.episodes, replay: episodesOf(h.streams.JetStream()), partitions: ingest.Partitions()},
		{target: &h.targets.effects, replay: effectsOf(h.streams.JetStream()), partitions: consolidator.Partitions()},
	}
	for i, s := range streams { // before the wait for one of them lets the other grow
		var err error
		if streams[i].end, err = h.targets.end(ctx, s.target, s.replay); err != nil {
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
func (h *process) behind(ctx context.Context, of *pipeline.Replay, partitions []pipeline.Partition, end uint64) (bool, error) {
	cursors, err := h.store.ReadCursors(ctx, pipeline.Readers(partitions)...)
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

// storing reports whether episodes of a fact scope were in their stream when the
// process started, and are not yet stored.
func (h *process) storing(ctx context.Context, fact scope.Scope) (bool, error) {
	end, err := h.targets.end(ctx, &h.targets.episodes, episodesOf(h.streams.JetStream()))
	if err != nil {
		return false, err
	}
	partition := ingest.Partitions()[fact.Partition(events.Partitions)]
	return h.behind(ctx, episodesOf(h.streams.JetStream()), []pipeline.Partition{partition}, end)
}

// countDropped sets where each scope goes on counting, if EPISODES has dropped
// messages that the store has not read: it was restored from a copy that is older
// than all that is left.
func (h *process) countDropped(ctx context.Context) error {
	if h.ingest == nil {
		return nil
	}
	begin, err := episodesOf(h.streams.JetStream()).Begin(ctx)
	if err != nil || begin <= 1 {
		return err
	}
	cursors, err := h.store.ReadCursors(ctx, pipeline.Readers(ingest.Partitions())...)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(cursors, func(c cursor.Cursor) bool { return c.Sequence+1 >= begin }) {
		return nil
	}
	h.log.Warn("EPISODES has dropped messages that the memory store has not read", "begins_at", begin)
	if err := h.cure().count(ctx, h.ingest, h.store); err != nil {
		return fmt.Errorf("count dropped episodes: %w", err)
	}
	return nil
}

// applyDropped applies what only the audit log has, if AUDIT has dropped effects that
// the store has not read: it was restored from a copy that is older than all that is
// left.
func (h *process) applyDropped(ctx context.Context) error {
	if h.consolidator == nil {
		return nil
	}
	begin, err := effectsOf(h.streams.JetStream()).Begin(ctx)
	if err != nil || begin <= 1 {
		return err
	}
	read, err := lowest(ctx, h.store, consolidator.Partitions())
	if err != nil || read+1 >= begin {
		return err
	}
	h.log.Warn("AUDIT has dropped effects that the memory store has not read", "begins_at", begin, "read_up_to", read)
	applied, err := h.consolidator.ApplyDropped(ctx, begin)
	h.log.Warn("effects were applied from the audit log", "effects", applied, "error", err)
	if errors.As(err, new(*consolidator.GapError)) {
		return nil // the scope is named where its next effect is buried
	}
	return err
}

// adoptEpisodes and adoptEffects are where to begin what an earlier version read with
// durable consumers.
func (h *process) adoptEpisodes(ctx context.Context, p pipeline.Partition) (uint64, error) {
	return episodesOf(h.streams.JetStream()).Adopt(ctx, p, func(e *pipeline.Entry) (bool, bool, error) {
		return h.ingest.Has(ctx, h.store, e)
	})
}

func (h *process) adoptEffects(ctx context.Context, p pipeline.Partition) (uint64, error) {
	has := h.consolidator.Applied
	if p.Reader != consolidator.Projector {
		has = h.consolidator.Logged
	}
	return effectsOf(h.streams.JetStream()).Adopt(ctx, p, func(e *pipeline.Entry) (bool, bool, error) { return has(ctx, e) })
}
