package broker_test

import (
	"context"
	"testing"

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
				if seen = e.Data.Revision; seen == prefetch/2 {
					brokertest.Steal(t, env.JS, broker.StreamAudit, int(last-prefetch))
				}
			}
			return seen
		},
		"follow": func(ctx context.Context) (seen uint64) {
			for e, err := range j.Follow(ctx, scope.Exactly(s), 8) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Data.Revision == prefetch/2 {
					brokertest.Steal(t, env.JS, broker.StreamAudit, int(last-prefetch))
				}
				if seen = e.Data.Revision; seen == last {
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
