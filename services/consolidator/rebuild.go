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

// ErrAhead: the store holds effects that AUDIT lacks. One of the two was
// restored from another time; nothing can be committed in such a scope.
var ErrAhead = errors.New("consolidator: the store holds effects that AUDIT lacks")

// stuck is the error of a scope whose AUDIT refused an append and yet holds
// nothing newer than the row.
func stuck(fact scope.Scope, sequence uint64) error {
	return fmt.Errorf("%w: scope %s: no message at or after sequence %d", ErrAhead, fact, sequence)
}

// GapError reports that effects of a scope are neither in AUDIT nor in the audit
// log, so that later ones cannot be applied.
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

// rebuilding is one run of [Service.Rebuild].
type rebuilding struct {
	service *Service
	out     Rebuilt
	at      reached
	born    map[scope.Scope]uint64 // incarnations: older effects were erased
	heads   map[scope.Scope]uint64 // sequence of the newest effect that AUDIT holds
	skipped map[scope.Scope]bool
	lacking func(fact scope.Scope, err error) error
}

// Rebuild applies the effects that AUDIT holds and the store lacks, of all
// scopes, read once in stream order, and calls read with each. Effects that AUDIT
// dropped or lost come from the audit log. Rebuild copies: the store is a
// function of the effects.
//
// Where neither has a revision of a scope, Rebuild calls lacking with a
// [*GapError]; where the audit log continues another history than AUDIT has, with
// an error that wraps [ErrAhead]. If lacking returns nil, Rebuild leaves the rest
// of that scope out; it returns any other error.
func (s *Service) Rebuild(ctx context.Context, tape audit.RebuildReader, read func(), lacking func(fact scope.Scope, err error) error) (Rebuilt, error) {
	r := &rebuilding{
		service: s, at: reached{}, born: map[scope.Scope]uint64{}, heads: map[scope.Scope]uint64{}, skipped: map[scope.Scope]bool{}, lacking: lacking,
	}
	err := r.run(ctx, tape, read)
	r.out.Scopes = len(r.at)
	return r.out, err
}

func (r *rebuilding) run(ctx context.Context, tape audit.RebuildReader, read func()) error {
	for e, err := range decoded(ctx, tape) {
		if err != nil {
			return err
		}
		fact := e.Data.Scope
		if err := r.begin(ctx, fact); err != nil {
			return err
		}
		if e.Data.Incarnation < r.born[fact] {
			read() // committed before an erasure
			continue
		}
		if !r.skipped[fact] {
			applied, err := r.service.reach(ctx, r.at, e)
			if err := r.count(fact, len(applied), err); err != nil {
				return err
			}
		}
		r.heads[fact] = e.Sequence
		read()
	}
	if err := r.fromLog(ctx); err != nil {
		return err
	}
	for fact := range r.at {
		if err := r.service.deps.Applier.Advance(ctx, fact); err != nil {
			return fmt.Errorf("advance scope %s: %w", fact, err)
		}
	}
	return nil
}

// begin looks up where a scope stands when it is first met.
func (r *rebuilding) begin(ctx context.Context, fact scope.Scope) error {
	if _, known := r.at[fact]; known {
		return nil
	}
	state, err := r.service.deps.Applier.State(ctx, fact)
	if err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	r.at[fact], r.born[fact] = state.Revision, state.Incarnation
	return nil
}

// count adds what was applied of a scope, and asks what to do about what is
// missing.
func (r *rebuilding) count(fact scope.Scope, applied int, err error) error {
	r.out.Effects += applied
	if errors.As(err, new(*GapError)) || errors.Is(err, ErrAhead) {
		r.skipped[fact] = true
		return r.lacking(fact, err)
	}
	return err
}

// readAhead is how many effects are decoded before it is their turn.
const readAhead = 64

// decoded is all of a stream, read and decoded while what came before is applied.
func decoded(ctx context.Context, tape audit.RebuildReader) iter.Seq2[events.Event[events.EffectCommitted], error] {
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

// fromLog applies what the audit log has beyond AUDIT: scopes that AUDIT holds
// nothing of any more, and the ends that AUDIT lost.
func (r *rebuilding) fromLog(ctx context.Context) error {
	logged, err := r.service.logged(ctx)
	if err != nil {
		return err
	}
	for fact, sequence := range logged {
		if r.skipped[fact] || sequence <= r.heads[fact] {
			continue
		}
		if err := r.begin(ctx, fact); err != nil {
			return err
		}
		applied, err := 0, r.sameHistory(ctx, fact)
		if err == nil {
			var effects []events.EffectCommitted
			effects, err = r.service.fill(ctx, r.at, fact, 0)
			applied = len(effects)
		}
		if err := r.count(fact, applied, err); err != nil {
			return err
		}
	}
	return nil
}

// sameHistory returns [ErrAhead] unless the audit log has the newest effect that
// AUDIT holds of a scope, at the sequence at which AUDIT holds it.
func (r *rebuilding) sameHistory(ctx context.Context, fact scope.Scope) error {
	head, revision := r.heads[fact], r.at[fact]
	if head == 0 || revision == 0 {
		return nil
	}
	for e, err := range r.service.deps.Kept.Effects(ctx, fact, revision-1) {
		if err != nil {
			return err
		}
		if e.Data.Revision == revision && e.Sequence == head {
			return nil
		}
		break
	}
	return fmt.Errorf("%w: scope %s: the audit log continues another history than revision %d of AUDIT", ErrAhead, fact, revision)
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
