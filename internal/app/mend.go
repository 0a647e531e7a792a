package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/cursor"
	"palimpsest/internal/embed"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

// mendAgain is the pause after a failed attempt to repair the memory store.
const mendAgain = time.Second

// cure holds the dependencies that recover the lost rows of a memory store.
type cure struct {
	cfg      Config
	streams  streams
	auditLog audit.Log
	embedder embed.Embedder
	log      *slog.Logger
}

// episodes stores again what ingest has stored: behind the cursors, which went back
// with all else, or from the beginning where scopes lie on several servers, each of
// which may lose its own.
func (c cure) episodes(ctx context.Context, through store.Store) error {
	began := time.Now()
	stores, err := c.ingest(through)
	if err != nil {
		return err
	}
	from := uint64(0)
	if m, ok := through.(store.Mender); !ok || !m.Scattered() {
		if from, err = lowest(ctx, through, ingest.Partitions()); err != nil {
			return err
		}
	}
	if err := c.count(ctx, stores, through); err != nil {
		return err
	}
	stored, err := stores.Rebuild(ctx, episodesOf(c.streams.JetStream()), from, func() {})
	if err != nil {
		return fmt.Errorf("recover episodes: %w", err)
	}
	c.log.Info("the memory store has all episodes again", "read", stored, "behind", from, "took", time.Since(began))
	return nil
}

func (c cure) ingest(through store.Store) (*ingest.Service, error) {
	return ingest.New(c.cfg.Ingest, ingest.Deps{Episodes: through, Cursors: through, Shares: through, Vectors: through, Embedders: embed.Only(c.embedder), Erased: c.cfg.erased()})
}

// lowest is the sequence below which all of parts was read.
func lowest(ctx context.Context, in cursor.Store, partitions []pipeline.Partition) (uint64, error) {
	cursors, err := in.ReadCursors(ctx, pipeline.Readers(partitions)...)
	if err != nil {
		return 0, err
	}
	least := slices.MinFunc(cursors, func(a, b cursor.Cursor) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return least.Sequence, nil
}

// effects applies again what was committed. What neither AUDIT nor the audit log
// has is no reason to stop the rest.
func (c cure) effects(ctx context.Context, through store.Store) error {
	began := time.Now()
	commits, err := consolidator.New(c.cfg.Consolidator, consolidator.Deps{
		Applier: through, Facts: through, Outcomes: through, Journal: journal.New(c.streams.JetStream()), Log: c.auditLog, Kept: c.auditLog,
		Cursors: through, LogCursors: c.auditLog, Shares: through, Logger: c.log,
		Behind: func(context.Context, scope.Scope) (bool, error) { return false, nil }, // episodes were stored before
	})
	if err != nil {
		return err
	}
	from := uint64(0)
	if m, ok := through.(store.Mender); !ok || !m.Scattered() {
		if from, err = lowest(ctx, through, consolidator.Partitions()); err != nil {
			return err
		}
	}
	begin, err := effectsOf(c.streams.JetStream()).Begin(ctx)
	if err != nil {
		return err
	}
	if begin > from+1 {
		if _, err := commits.ApplyDropped(ctx, begin); err != nil && !errors.As(err, new(*consolidator.GapError)) {
			return fmt.Errorf("apply effects of the audit log: %w", err)
		}
	}
	err = commits.Replay(ctx, effectsOf(c.streams.JetStream()), from)
	if err != nil && !errors.Is(err, consolidator.ErrAhead) && !errors.As(err, new(*consolidator.GapError)) {
		return fmt.Errorf("apply effects again: %w", err)
	}
	c.log.Info("the memory store has all effects again", "behind", from, "took", time.Since(began), "error", err)
	return nil
}

func (h *process) cure() cure {
	return cure{cfg: h.cfg, streams: h.streams, auditLog: h.auditLog, embedder: h.embedder, log: h.log}
}

// remedy is what is this process's to put back.
func (h *process) remedy() (r store.Remedy) {
	c := h.cure()
	if h.ingest != nil {
		r.Episodes = c.episodes
	}
	if h.consolidator != nil {
		r.Effects = c.effects
	}
	return r
}

// lost is closed while the memory store may lack what it acknowledged; nil where
// it cannot.
func (h *process) lost() <-chan struct{} {
	if m, ok := h.store.(store.Mender); ok {
		return m.Lost()
	}
	return nil
}

// mend returns once the memory store is complete, or ctx has ended. It recovers
// the rows that this process is responsible for and waits for the other processes.
func (h *process) mend(ctx context.Context) {
	m, ok := h.store.(store.Mender)
	if !ok {
		return
	}
	ticker := time.NewTicker(mendAgain)
	defer ticker.Stop()
	for ctx.Err() == nil {
		err := m.Mend(ctx, h.remedy())
		if err == nil || ctx.Err() != nil {
			return
		}
		h.log.Error("mend the memory store", "error", err)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// keepWhole mends the memory store whenever it is lost.
func (h *process) keepWhole(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.lost():
		}
		h.caughtUp.done.Store(false)
		if h.consolidator != nil {
			h.consolidator.Forget()
		}
		h.mend(ctx)
		h.awaitRecovery(ctx)
	}
}
