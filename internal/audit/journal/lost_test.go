package journal_test

import (
	"context"
	"iter"
	"testing"

	"palimpsest/internal/audit/journal"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// prefetch is how many messages the journal's reader asks for before it takes the
// first: later messages can be removed without its notice.
const prefetch = 8 + 64

// TestJournalReadsWhatGotLostOnTheWay: nothing that comes later tells a reader that
// the last message never came.
func TestJournalReadsWhatGotLostOnTheWay(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	j := journal.New(env.JS)
	last, after := uint64(prefetch+5), uint64(0)
	for revision := uint64(1); revision <= last; revision++ {
		after = appendEffect(t, j, s, revision, after)
	}
	type effects = iter.Seq2[events.Event[events.EffectCommitted], error]
	for name, read := range map[string]struct {
		after   uint64
		effects func(context.Context) effects
		endless bool
	}{
		"read": {0, func(ctx context.Context) effects {
			return j.ReadScope(ctx, s, 0)
		}, false},
		"follow": {prefetch - 64, func(ctx context.Context) effects {
			return j.Follow(ctx, scope.Exactly(s), prefetch-64)
		}, true},
	} {
		seen := read.after
		for e, err := range read.effects(bounded(t)) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if seen++; seen != e.Data.Revision {
				t.Fatalf("%s: revision %d is number %d", name, e.Data.Revision, seen)
			}
			if seen == prefetch/2 {
				brokertest.Steal(t, env.JS, topology.StreamAudit, int(last-prefetch))
			}
			if read.endless && seen == last {
				break
			}
		}
		if seen != last {
			t.Errorf("%s: %d effects, want %d", name, seen, last)
		}
	}
}
