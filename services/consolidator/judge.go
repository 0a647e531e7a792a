package consolidator

import (
	"context"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// standing is how a batch stands to the scope's row.
type standing int

const (
	fresh  standing = iota // may be committed
	old                    // its range was committed
	ahead                  // knows more than the row: the row may be behind
	erased                 // the scope was erased since the work began
	unborn                 // of an incarnation that the row does not know yet
)

// standing is judge for a batch of any cause. A late batch makes good what is
// still skipped: once its range is consolidated, by an earlier run of itself or
// because it was issued again, there is nothing left to do.
func (s *Service) standing(ctx context.Context, state memory.State, b events.DeltasDecided) (standing, error) {
	found := judge(state, b)
	if b.Cause != events.CauseLate || b.Range.Empty() || found != fresh {
		return found, nil
	}
	skipped, err := store.ReadWhole(ctx, s.deps.Applier, func() ([]events.Range, error) {
		return s.deps.Applier.Skipped(ctx, b.Scope, b.Rule)
	})
	if err != nil {
		return found, fmt.Errorf("read skipped ranges: %w", err)
	}
	for _, r := range skipped {
		if r.From < b.Range.To && b.Range.From < r.To {
			return found, nil
		}
	}
	return old, nil
}

// judge compares a batch with the scope's row. It does not find a stale decision;
// see [Service.stale].
func judge(state memory.State, b events.DeltasDecided) standing {
	switch {
	case b.Incarnation < state.Incarnation:
		return erased
	case b.Incarnation > state.Incarnation:
		return unborn
	case b.Asked != nil && b.Basis > state.Revision:
		return ahead
	case b.Command != nil:
		return fresh
	}
	if memory.MovesWatermark(b) {
		switch watermark := state.Watermarks[b.Rule]; {
		case b.Range.From < watermark:
			return old
		case b.Range.From > watermark:
			return ahead
		}
	}
	if b.Cause == events.CauseLate && b.Range.To > state.Watermarks[b.Rule] {
		return ahead // the range of a dead letter is not skipped yet
	}
	if len(b.Deltas) > 0 && b.Basis > state.Revision {
		return ahead
	}
	return fresh
}
