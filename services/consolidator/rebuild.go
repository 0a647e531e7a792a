package consolidator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"palimpsest/internal/audit"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// GapError says that effects of a scope stand neither in AUDIT nor in the audit
// log, so that what follows them cannot be applied.
type GapError struct {
	Scope scope.Scope
	// Missing is the first revision that is gone, Next the first that is there
	// again; 0 where none is.
	Missing, Next uint64
}

func (e *GapError) Error() string {
	next := "nothing follows"
	if e.Next > 0 {
		next = fmt.Sprintf("revision %d follows", e.Next)
	}
	return fmt.Sprintf("scope %s: revision %d is neither in AUDIT nor in the audit log; %s", e.Scope, e.Missing, next)
}

// Rebuilt counts what [Service.Rebuild] applied.
type Rebuilt struct {
	Scopes  int // that have effects
	Effects int
}

// reached is the revision that each scope has.
type reached map[scope.Scope]uint64

// Rebuild applies the effects that AUDIT holds and the store lacks, of all
// scopes, read once in stream order, and calls read with each; what AUDIT
// dropped comes from the audit log. It copies: the store is a function of the
// effects. It returns a [*GapError] where neither has a revision, and
// [ErrAhead] where the audit log has effects that AUDIT should have and has not.
func (s *Service) Rebuild(ctx context.Context, tape audit.Tape, read func()) (Rebuilt, error) {
	out, at := Rebuilt{}, reached{}
	for e, err := range decoded(ctx, tape) {
		if err != nil {
			return out, err
		}
		if _, known := at[e.Data.Scope]; !known {
			state, err := s.deps.Applier.State(ctx, e.Data.Scope)
			if err != nil {
				return out, fmt.Errorf("read state: %w", err)
			}
			at[e.Data.Scope] = state.Revision
		}
		applied, err := s.reach(ctx, at, e)
		if err != nil {
			return out, err
		}
		out.Effects += len(applied)
		read()
	}
	more, err := s.rebuildDropped(ctx, tape, at)
	out.Effects += more
	out.Scopes = len(at)
	if err != nil {
		return out, err
	}
	for fact := range at {
		if err := s.deps.Applier.Advance(ctx, fact); err != nil {
			return out, fmt.Errorf("advance scope %s: %w", fact, err)
		}
	}
	return out, nil
}

// readAhead is how many effects are decoded before it is their turn.
const readAhead = 64

// decoded is all of a tape, read and decoded while what came before is applied.
func decoded(ctx context.Context, tape audit.Tape) iter.Seq2[events.Event[events.EffectCommitted], error] {
	type read struct {
		effect events.Event[events.EffectCommitted]
		err    error
	}
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		reading, stop := context.WithCancel(ctx)
		reads := make(chan read, readAhead)
		var reader sync.WaitGroup
		defer reader.Wait()
		defer stop()
		reader.Go(func() {
			defer close(reads)
			for e, err := range tape.All(reading, 0) {
				select {
				case reads <- read{e, err}:
				case <-reading.Done():
					return
				}
			}
		})
		for r := range reads {
			if !yield(r.effect, r.err) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(events.Event[events.EffectCommitted]{}, err)
		}
	}
}

// rebuildDropped applies what the audit log has of scopes of which AUDIT holds
// nothing any more.
func (s *Service) rebuildDropped(ctx context.Context, tape audit.Tape, at reached) (count int, err error) {
	logged, err := s.logged(ctx)
	if err != nil {
		return 0, err
	}
	begin, err := tape.Begin(ctx)
	if err != nil {
		return 0, err
	}
	for fact, sequence := range logged {
		if _, known := at[fact]; known {
			continue
		}
		if sequence >= begin {
			return count, fmt.Errorf("%w: scope %s is at sequence %d in the audit log, and AUDIT holds nothing of it",
				ErrAhead, fact, sequence)
		}
		state, err := s.deps.Applier.State(ctx, fact)
		if err != nil {
			return count, fmt.Errorf("read state: %w", err)
		}
		at[fact] = state.Revision
		applied, err := s.fill(ctx, at, fact, 0)
		count += len(applied)
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

// logged is where the newest effect that the audit log has of each scope stands.
// What AUDIT lacks of them below its begin, it has dropped; from there on, lost.
func (s *Service) logged(ctx context.Context) (map[scope.Scope]uint64, error) {
	heads := map[scope.Scope]uint64{}
	if s.deps.Kept == nil {
		return heads, nil
	}
	err := s.deps.Kept.Heads(ctx, func(head audit.Head) error {
		heads[head.Scope] = head.Sequence
		return nil
	})
	return heads, err
}

// reach applies an effect, and before it what AUDIT dropped of the revisions
// below. It returns what was applied.
func (s *Service) reach(ctx context.Context, at reached, e events.Event[events.EffectCommitted]) ([]events.EffectCommitted, error) {
	fact, applied := e.Data.Scope, []events.EffectCommitted(nil)
	if e.Data.Revision > at[fact]+1 {
		var err error
		if applied, err = s.fill(ctx, at, fact, e.Data.Revision); err != nil {
			return applied, err
		}
	}
	err := s.step(ctx, at, e, &applied)
	return applied, err
}

// fill applies the effects of a scope that the audit log has, up to the revision
// before to; to 0 means all.
func (s *Service) fill(ctx context.Context, at reached, fact scope.Scope, to uint64) (applied []events.EffectCommitted, err error) {
	gap := &GapError{Scope: fact, Missing: at[fact] + 1, Next: to}
	if s.deps.Kept == nil {
		return nil, gap
	}
	for e, err := range s.deps.Kept.Effects(ctx, fact, at[fact]) {
		switch {
		case err != nil:
			return applied, err
		case to > 0 && e.Data.Revision >= to:
			return applied, missing(gap, at[fact]+1, to)
		case e.Data.Revision > at[fact]+1:
			return applied, missing(gap, at[fact]+1, e.Data.Revision)
		}
		if err := s.step(ctx, at, e, &applied); err != nil {
			return applied, err
		}
	}
	return applied, missing(gap, at[fact]+1, to)
}

// missing is the gap from one revision to another, nil where there is none.
func missing(gap *GapError, from, to uint64) error {
	if from >= to {
		return nil
	}
	gap.Missing, gap.Next = from, to
	return gap
}

func (s *Service) step(ctx context.Context, at reached, e events.Event[events.EffectCommitted], applied *[]events.EffectCommitted) error {
	if e.Data.Revision <= at[e.Data.Scope] {
		return nil
	}
	switch err := s.deps.Applier.Apply(ctx, e.Data, e.Sequence); {
	case errors.Is(err, store.ErrIncarnation):
		return nil // committed before an erasure
	case err != nil:
		return fmt.Errorf("apply revision %d of scope %s: %w", e.Data.Revision, e.Data.Scope, err)
	}
	at[e.Data.Scope] = e.Data.Revision
	*applied = append(*applied, e.Data)
	return nil
}
