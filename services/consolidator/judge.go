package consolidator

import (
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// standing is how a batch stands to the scope's row.
type standing int

const (
	fresh  standing = iota // may be committed
	old                    // its range was committed
	stale                  // decided on rows that changed since
	ahead                  // knows more than the row: the row may be behind
	erased                 // the scope was erased since the work began
	unborn                 // of an incarnation that the row does not know yet
)

// judge compares a batch with the scope's state. A batch that carries no delta
// and no candidate depends on no basis.
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
	if len(b.Deltas) == 0 && len(b.Candidates) == 0 {
		return fresh
	}
	switch {
	case b.Basis < state.Revision:
		return stale
	case b.Basis > state.Revision:
		return ahead
	}
	return fresh
}
