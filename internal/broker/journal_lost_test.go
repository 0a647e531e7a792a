package broker_test

import (
	"context"
	"strconv"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/broker/brokertest"
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
	for name, read := range map[string]func(context.Context) uint64{
		"read": func(ctx context.Context) (seen uint64) {
			for e, err := range j.ReadScope(ctx, s, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if seen++; seen != e.Data.Revision {
					t.Fatalf("revision %d is number %d", e.Data.Revision, seen)
				}
				if seen == prefetch/2 {
					brokertest.Steal(t, env.JS, broker.StreamAudit, int(last-prefetch))
				}
			}
			return seen
		},
		"follow": func(ctx context.Context) (seen uint64) {
			seen = prefetch - 64
			for e, err := range j.Follow(ctx, scope.Exactly(s), seen) {
				if err != nil {
					t.Fatal(err)
				}
				if seen++; seen != e.Data.Revision {
					t.Fatalf("revision %d is number %d", e.Data.Revision, seen)
				}
				if seen == prefetch/2 {
					brokertest.Steal(t, env.JS, broker.StreamAudit, int(last-prefetch))
				}
				if seen == last {
					break
				}
			}
			return seen
		},
	} {
		if seen := read(bounded(t)); seen != last {
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
			brokertest.Steal(t, env.JS, broker.StreamAudit, lost)
		}
		return nil
	})
	if err != nil || len(seen) != ahead+lost {
		t.Errorf("%d heads, %v; want %d", len(seen), err, ahead+lost)
	}
}
