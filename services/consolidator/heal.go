package consolidator

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/internal/failpoint"
	"palimpsest/pkg/scope"
)

// ErrAhead: the store holds effects that AUDIT lacks. One of the two was
// restored from another time; nothing can be committed in such a scope.
var ErrAhead = errors.New("consolidator: the store holds effects that AUDIT lacks")

// Healed counts what [Service.Heal] found.
type Healed struct {
	Scopes int // that AUDIT holds anything of
	Behind int // of which the store lacked effects, and has them now
	Ahead  int // of which AUDIT lacks effects
	Failed int // that could not be rolled forward
}

// Heal rolls every scope forward that the store lacks effects of: what a crash
// between commit and apply leaves, or a store restored from an older copy. The
// projector would do so only for what it has not acknowledged.
//
// What was said must be stored again before, as far as its stream still has it:
// a scope whose watermark ends above its last ordinal goes on from there.
//
// A scope that cannot be healed keeps none of the others from it; the error
// then names one. It is [ErrAhead] where AUDIT is what lacks effects.
func (s *Service) Heal(ctx context.Context, heads audit.Heads) (Healed, error) {
	var out Healed
	var first error
	fail := func(count *int, err error) {
		*count++
		if first == nil {
			first = err
		}
	}
	var behind []scope.Scope
	err := heads.Heads(ctx, func(h audit.Head) error {
		state, err := s.deps.Applier.State(ctx, h.Scope)
		if err != nil {
			return fmt.Errorf("read state: %w", err)
		}
		out.Scopes++
		switch {
		case state.AuditSeq < h.Sequence:
			behind = append(behind, h.Scope)
		case state.AuditSeq > h.Sequence:
			fail(&out.Ahead, fmt.Errorf("%w: scope %s is at sequence %d there, %d here",
				ErrAhead, h.Scope, h.Sequence, state.AuditSeq))
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	for _, fact := range behind {
		err := s.RollForward(ctx, fact)
		if err == nil {
			err = s.deps.Applier.Advance(ctx, fact)
		}
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err != nil:
			fail(&out.Failed, fmt.Errorf("heal scope %s: %w", fact, err))
		default:
			out.Behind++
			failpoint.Reach(failpoint.Start, failpoint.Healed)
		}
	}
	return out, first
}

// stuck is the error of a scope whose AUDIT refused an append and yet holds
// nothing newer than the row.
func stuck(fact scope.Scope, sequence uint64) error {
	return fmt.Errorf("%w: scope %s: nothing stands at or behind sequence %d", ErrAhead, fact, sequence)
}
