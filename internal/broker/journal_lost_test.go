package broker_test

import (
	"context"
	"iter"
	"strconv"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/broker/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// prefetch is how many messages the journal's reader asks for before it takes the
// first: what comes behind them can be taken away unseen.
const prefetch = 8 + 64

// TestJournalReadsWhatGotLostOnTheWay: nothing that comes later tells a reader that
// the last message never came.
func TestJournalReadsWhatGotLostOnTheWay(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	s := scope.Scope{Project: "default", User: "alice"}
	j := broker.NewJournal(env.JS)
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

// TestHeadsReadWhatGotLostOnTheWay: the same of the newest effects of scopes.
func TestHeadsReadWhatGotLostOnTheWay(t *testing.T) {
	t.Parallel()
	const ahead, lost = 4096, 3
	env := brokertest.Start(t)
	j := broker.NewJournal(env.JS)
	for i := range ahead + lost {
		appendEffect(t, j, scope.Scope{Project: "default", User: strconv.Itoa(i)}, 1, 0)
	}
	seen := map[scope.Scope]bool{}
	err := j.Heads(bounded(t), func(h audit.Head) error {
		if seen[h.Scope] {
			t.Errorf("%v comes twice", h.Scope)
		}
		if seen[h.Scope] = true; len(seen) == ahead/4 {
			brokertest.Steal(t, env.JS, topology.StreamAudit, lost)
		}
		return nil
	})
	if err != nil || len(seen) != ahead+lost {
		t.Errorf("%d heads, %v; want %d", len(seen), err, ahead+lost)
	}
}
