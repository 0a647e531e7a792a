package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"palimpsest/internal/audit"
	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

// Draft is a memory store under construction. No process reads it.
type Draft interface {
	store.Store
	// Settle returns once what was written so far can be read.
	Settle(ctx context.Context) error
	// Seal completes the store: it needs nothing beside it afterwards.
	Seal(ctx context.Context) error
	// ResumeAt sets the revision of a fact scope: the next effect is the one
	// behind it.
	ResumeAt(ctx context.Context, fact scope.Scope, revision uint64) error
	// Inherit copies from the live store, of the same backend, the rows that no stream
	// holds.
	Inherit(ctx context.Context, live store.Store) error
	// TakeOver puts the store in the place of live, if there is one, and closes both.
	// Rows that came to live meanwhile are recovered with remedy. It returns where live
	// is kept, if it is.
	TakeOver(ctx context.Context, live store.Store, remedy store.Remedy) (kept string, err error)
	// Discard closes the store and removes it.
	Discard(ctx context.Context) error
}

// Journal is AUDIT.
type Journal interface {
	audit.Journal
	audit.RebuildReader
	// ResumeAt lets AUDIT go on at a sequence above all that it holds.
	ResumeAt(ctx context.Context, sequence uint64) error
}

// Inputs are what a rebuild reads from and how it makes a store.
type Inputs struct {
	Repair // its Log is set

	// Live opens the present store, with any embedder. The error of none wraps
	// [ErrAbsent], that of one that cannot be read [store.ErrDamaged].
	Live func(ctx context.Context) (store.Store, error)
	// Begin opens an empty store beside it and removes the leftovers of a killed run.
	Begin func(ctx context.Context, embedder embed.Info) (Draft, error)
	// Born is as in [consolidator.Deps].
	Born func(project, user string) uint64
	Part Part
}

// Result is what came of a rebuild.
type Result struct {
	Live      string `json:"live"` // digest, empty where the store cannot be read
	LiveError string `json:"live_error,omitempty"`
	Rebuilt   string `json:"rebuilt"`
	Episodes  int    `json:"episodes"`
	Effects   int    `json:"effects"`
	Scopes    int    `json:"scopes"`
	// Moved counts places of the live store with another episode, or none.
	Moved int `json:"moved"`
	// OnlyLive counts the episodes that only the live store has. ScopesOnlyLive
	// counts the scopes of which it has effects that neither AUDIT nor the audit log
	// has. A check leaves them out; a rebuild copies them.
	OnlyLive       int `json:"only_live,omitempty"`
	ScopesOnlyLive int `json:"scopes_only_live,omitempty"`
	// Unreadable counts places of the live store that could not be read.
	Unreadable int  `json:"unreadable,omitempty"`
	Lost       Loss `json:"lost"`

	// AuditEnd is the sequence of the newest effect that the rebuilt store has.
	AuditEnd uint64 `json:"-"`
}

// Same reports whether the live store is what the streams make of it.
func (r Result) Same() bool {
	return r.Live == r.Rebuilt && r.Moved == 0 && r.OnlyLive == 0 && r.ScopesOnlyLive == 0
}

// Rebuild is one run of a rebuild.
type Rebuild struct {
	in   Inputs
	log  *slog.Logger
	made Draft
	// live is the store to replace; nil where there is none, or it cannot be opened.
	// liveError says why; damaged that there is a store all the same.
	live      store.Store
	liveError error
	damaged   bool
	out       Result
	// had are the counts of the live store, nil where it cannot count. whole says
	// that all of its scopes were compared, lacks how many episodes the new one lacks.
	had *store.Stats
	// said and committed are what EPISODES and AUDIT held at the beginning.
	said, committed pipeline.Extent
	whole           bool
	lacks           uint64

	ingest  *ingest.Service
	commits *consolidator.Service
	gaps    map[scope.Scope]error // of scopes whose effects are not all there
}

// New returns a rebuild of in.
func New(in Inputs) *Rebuild { return &Rebuild{in: in, log: in.Logger} }

// run makes a store. Without keep it makes it of the streams and the audit log alone.
// With keep it has all that the streams, the audit log and the live store have: where an
// episode is in the live store alone, all of the live store's episodes keep their
// places, and those that only EPISODES has come behind them.
func (r *Rebuild) run(ctx context.Context, keep bool) error {
	if err := r.digestLive(ctx); err != nil {
		return err
	}
	adopting := r.said.First > 1
	if err := r.copy(ctx, adopting, keep); err != nil {
		return err
	}
	if r.out.OnlyLive > 0 && !adopting && keep {
		r.log.WarnContext(ctx, "EPISODES lacks episodes that the memory store has; they are copied from there", "episodes", r.out.OnlyLive)
		only := r.out.OnlyLive
		if err := r.release().Discard(ctx); err != nil {
			return err
		}
		if err := r.copy(ctx, true, keep); err != nil {
			return err
		}
		r.out.OnlyLive = only
	}
	return r.count(ctx)
}

// digestLive takes the counts and the digest of the live store, which may grow
// from now on. A damaged store has none; its readable rows are copied all the
// same.
func (r *Rebuild) digestLive(ctx context.Context) (err error) {
	if r.liveError != nil {
		r.out.LiveError = r.liveError.Error()
	}
	if r.live == nil {
		return nil
	}
	stats, err := r.live.Stats(ctx)
	if err == nil {
		r.had = &stats
		r.out.Live, err = store.Digest(ctx, r.live, memory.ExportFull)
	}
	return r.tolerate(err)
}

// tolerate notes that the live store is damaged; any other error is returned.
func (r *Rebuild) tolerate(err error) error {
	if errors.Is(err, store.ErrDamaged) {
		r.out.LiveError = err.Error()
		return nil
	}
	return err
}

// copy stores what was said, applies what came of it, and compares.
func (r *Rebuild) copy(ctx context.Context, adopting, keep bool) (err error) {
	r.out.Episodes, r.out.Effects, r.out.Scopes, r.out.Unreadable = 0, 0, 0, 0
	made, err := r.in.Begin(ctx, r.in.Embedder.Info())
	if err != nil {
		return err // made is no store then, and may be a nil pointer
	}
	r.made = made
	r.ingest, err = ingest.New(r.in.IngestConfig, ingest.Deps{
		Episodes: r.made, Cursors: r.made, Shares: r.made, Vectors: r.made, Embedders: embed.Only(r.in.Embedder),
		Erased: r.in.Erased,
	})
	if err != nil {
		return err
	}
	r.commits, err = consolidator.New(r.in.ConsolidatorConfig, consolidator.Deps{
		Applier: r.made, Facts: r.made, Outcomes: r.made, Journal: r.in.Journal, Log: r.in.Log, Kept: r.in.Log,
		Cursors: r.made, LogCursors: r.in.Log, Shares: r.made, Born: r.in.Born, Logger: r.log,
	})
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return r.copySaid(ctx, adopting) },
		func() error { return r.copyEffects(ctx) },
		func() error { return r.copyRest(ctx, keep) },
		func() error { return r.compare(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// copySaid reads EPISODES, and before it the episodes of the live store, where
// EPISODES does not have them all.
func (r *Rebuild) copySaid(ctx context.Context, adopting bool) error {
	step, end := r.in.Part("episodes", r.said.Messages)
	defer end()
	if adopting {
		if err := r.adopt(ctx); err != nil {
			return err
		}
	}
	said, err := r.ingest.Rebuild(ctx, r.in.Episodes, 0, func() { step(1) })
	r.out.Episodes += said
	return err
}

func (r *Rebuild) adopt(ctx context.Context) error {
	if r.live == nil {
		r.log.WarnContext(ctx, "episodes that EPISODES dropped are lost", "before", r.said.First)
	} else {
		copied, err := adopt(ctx, r.live, r.made, r.said.Last, func() {})
		r.out.Episodes += copied.Episodes
		if err := r.tolerate(err); err != nil {
			return err
		}
	}
	err := r.countDropped(ctx)
	return r.tolerate(err)
}

func (r *Rebuild) copyEffects(ctx context.Context) error {
	r.gaps = map[scope.Scope]error{}
	read, err := r.in.Effects.End(ctx)
	if err != nil {
		return err
	}
	step, end := r.in.Part("effects", r.committed.Messages)
	applied, err := r.commits.Rebuild(ctx, r.in.Journal, func() { step(1) }, func(fact scope.Scope, err error) error {
		r.gaps[fact] = err
		return nil
	})
	end()
	r.out.Effects, r.out.Scopes = applied.Effects, applied.Scopes
	if err == nil {
		err = r.made.SetCursor(ctx, consolidator.Projector, 0, read)
	}
	if err != nil {
		return err
	}
	return r.made.Settle(ctx)
}

// copyRest copies from the live store the scopes of which it has more effects
// than AUDIT and the audit log have; without keep it counts them. It returns the
// gap of a scope of which no other place has what is missing.
func (r *Rebuild) copyRest(ctx context.Context, keep bool) error {
	r.out.ScopesOnlyLive = 0
	filled := map[scope.Scope]bool{}
	if r.live != nil {
		err := each(ctx, r.live, nil, func(fact scope.Scope, live memory.State) error {
			only, err := r.onlyLive(ctx, fact, live, keep)
			if only {
				r.out.ScopesOnlyLive++
				filled[fact] = true
			}
			return err
		})
		if err := r.tolerate(err); err != nil {
			return fmt.Errorf("copy effects of the live store: %w", err)
		}
		if err := r.made.Settle(ctx); err != nil {
			return err
		}
	}
	for fact, gap := range r.gaps {
		switch {
		case filled[fact] && keep:
			if err := r.commits.RollForward(ctx, fact); err != nil {
				return err
			}
		case filled[fact]:
		case errors.Is(gap, consolidator.ErrAhead):
			r.log.WarnContext(ctx, "the audit log has another history of a scope than AUDIT, which counts", "scope", fact.String(), "error", gap)
		default:
			return gap
		}
	}
	return r.made.Settle(ctx)
}

// onlyLive reports whether the live store has effects of a scope that are nowhere
// else, and copies them if keep is set. AUDIT has those committed meanwhile.
func (r *Rebuild) onlyLive(ctx context.Context, fact scope.Scope, live memory.State, keep bool) (bool, error) {
	made, err := r.made.State(ctx, fact)
	if err != nil || made.Revision >= live.Revision {
		return false, err
	}
	if err := r.commits.RollForward(ctx, fact); err != nil && !errors.As(err, new(*consolidator.GapError)) {
		return false, err
	}
	if err := r.made.Settle(ctx); err != nil {
		return false, err
	}
	if keep {
		return copyScope(ctx, r.live, r.made, fact)
	}
	made, err = r.made.State(ctx, fact)
	return made.Revision < live.Revision, err
}

func (r *Rebuild) compare(ctx context.Context) (err error) {
	if r.out.Rebuilt, err = store.Digest(ctx, r.made, memory.ExportFull); err != nil || r.live == nil {
		return err
	}
	found, err := compare(ctx, r.live, r.made, r.in.Episodes.Holds)
	r.out.Moved, r.out.OnlyLive, r.out.Unreadable = found.Moved, found.Lacking, found.Unreadable
	r.lacks, r.whole = uint64(found.Lacking+found.Lost), err == nil
	return r.tolerate(err)
}
