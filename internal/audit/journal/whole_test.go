package journal_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestP5OvertakenReaderSaysSo: a reader that AUDIT is trimmed in front of yields
// no effect behind one that it did not, and then returns ErrTrimmed. What
// its filter leaves out is no gap.
func TestP5OvertakenReaderSaysSo(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*journal.Journal, context.Context, scope.Selector) iter.Seq2[events.Event[events.EffectCommitted], error]{
		"read": func(j *journal.Journal, ctx context.Context, sel scope.Selector) iter.Seq2[events.Event[events.EffectCommitted], error] {
			return j.Read(ctx, sel, 0)
		},
		"follow": func(j *journal.Journal, ctx context.Context, sel scope.Selector) iter.Seq2[events.Event[events.EffectCommitted], error] {
			return j.Follow(ctx, sel, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := brokertest.Start(t)
			j := journal.New(env.JS)
			alice, bob := scope.Scope{Project: "default", User: "alice"}, scope.Scope{Project: "default", User: "bob"}
			const each = 200 // more than is read ahead
			var a, b uint64
			for revision := uint64(1); revision <= each; revision++ {
				a, b = appendEffect(t, j, alice, revision, a), appendEffect(t, j, bob, revision, b)
			}
			stream, err := env.JS.Stream(bounded(t), topology.StreamAudit)
			if err != nil {
				t.Fatal(err)
			}
			last := uint64(0)
			for e, err := range read(j, bounded(t), scope.Exactly(alice)) {
				if errors.Is(err, audit.ErrTrimmed) {
					if last < 20 || last > each-30 {
						t.Errorf("trimmed behind %d", last)
					}
					return
				}
				if err != nil || e.Data.Revision != last+1 {
					t.Fatalf("revision %d behind %d, %v", e.Data.Revision, last, err)
				}
				if last++; last == 20 {
					if err := stream.Purge(bounded(t), jetstream.WithPurgeSequence(a-20)); err != nil {
						t.Fatal(err)
					}
				}
			}
			t.Errorf("ended behind %d", last)
		})
	}
}
