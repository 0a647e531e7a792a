package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/embed"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

// Repair recovers the lost rows of a memory store from the streams.
type Repair struct {
	Episodes, Effects *pipeline.Replay // EPISODES and AUDIT
	Journal           Journal          // AUDIT
	// Log is the audit log of this process; nil where no service of it has one. OpenLog
	// opens it then; nil where it is the file of another process.
	Log     audit.Log
	OpenLog func(context.Context) (audit.Log, error)

	IngestConfig       ingest.Config
	ConsolidatorConfig consolidator.Config
	Embedder           embed.Embedder
	// Erased is as in [ingest.Deps].
	Erased func(project, user string, sequence uint64, arrived time.Time) bool
	Logger *slog.Logger
}

// StoreAgain stores again the episodes that ingest has stored, behind the sequence that [readFrom] returns.
func (r Repair) StoreAgain(ctx context.Context, through store.Store) error {
	began := time.Now()
	stores, err := r.service(through)
	if err != nil {
		return err
	}
	from, err := readFrom(ctx, through, ingest.Partitions())
	if err != nil {
		return err
	}
	if err := r.Count(ctx, stores, through); err != nil {
		return err
	}
	stored, err := stores.Rebuild(ctx, r.Episodes, from, func() {})
	if err != nil {
		return fmt.Errorf("recover episodes: %w", err)
	}
	r.Logger.Info("the memory store has all episodes again", "read", stored, "behind", from, "took", time.Since(began))
	return nil
}

// readFrom returns the sequence behind which a reader of partitions begins again: its cursors
// went back with the rows. It is 0 where the rows lie on several servers, each of which may
// lose its own.
func readFrom(ctx context.Context, through store.Store, partitions []pipeline.Partition) (uint64, error) {
	if m, ok := through.(store.Mender); ok && m.Scattered() {
		return 0, nil
	}
	return lowest(ctx, through, partitions)
}

func (r Repair) service(through store.Store) (*ingest.Service, error) {
	return ingest.New(r.IngestConfig, ingest.Deps{Episodes: through, Cursors: through, Shares: through, Vectors: through, Embedders: embed.Only(r.Embedder), Erased: r.Erased})
}

// ApplyAgain applies again the committed effects. A gap that neither AUDIT nor the
// audit log fills does not stop the rest.
func (r Repair) ApplyAgain(ctx context.Context, through store.Store) error {
	began := time.Now()
	commits, err := consolidator.New(r.ConsolidatorConfig, consolidator.Deps{
		Applier: through, Facts: through, Outcomes: through, Journal: r.Journal, Log: r.Log, Kept: r.Log,
		Cursors: through, LogCursors: r.Log, Shares: through, Logger: r.Logger,
		Behind: func(context.Context, scope.Scope) (bool, error) { return false, nil }, // episodes were stored before
	})
	if err != nil {
		return err
	}
	from, err := readFrom(ctx, through, consolidator.Partitions())
	if err != nil {
		return err
	}
	audit, err := r.Effects.Extent(ctx)
	if err != nil {
		return err
	}
	if audit.First > from+1 {
		if _, err := commits.ApplyDropped(ctx, audit.First); err != nil && !errors.As(err, new(*consolidator.GapError)) {
			return fmt.Errorf("apply effects of the audit log: %w", err)
		}
	}
	err = commits.Replay(ctx, r.Effects, from)
	if err != nil && !errors.Is(err, consolidator.ErrAhead) && !errors.As(err, new(*consolidator.GapError)) {
		return fmt.Errorf("apply effects again: %w", err)
	}
	r.Logger.Info("the memory store has all effects again", "behind", from, "took", time.Since(began), "error", err)
	return nil
}

// Count sets the ordinals of a store that lacks episodes of EPISODES. If no service
// of this process has the audit log open, Count opens it meanwhile, unless it is the
// file of another process.
func (r Repair) Count(ctx context.Context, said *ingest.Service, behind store.Store) error {
	if all, err := r.Episodes.Extent(ctx); err != nil || all.First <= 1 {
		return err
	}
	counting := Counting{Ingest: said, Episodes: r.Episodes, Journal: r.Journal, Live: behind, Into: behind}
	switch {
	case r.Log != nil:
		counting.Log = r.Log
	case r.OpenLog != nil:
		kept, err := r.OpenLog(ctx)
		if err != nil {
			return fmt.Errorf("count episodes: %w", err)
		}
		defer func() { _ = kept.Close() }() // it was read
		counting.Log = kept
	}
	return counting.Run(ctx)
}
