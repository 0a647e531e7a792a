package broker_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/broker"
	"palimpsest/internal/broker/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/scope"
)

func TestHeadsAreTheNewestOfEachScope(t *testing.T) {
	t.Parallel()
	j := broker.NewJournal(brokertest.Start(t).JS)
	heads := func() map[scope.Scope]uint64 {
		got := map[scope.Scope]uint64{}
		err := j.Heads(bounded(t), func(h audit.Head) error {
			got[h.Scope] = h.Sequence
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := heads(); len(got) != 0 {
		t.Errorf("heads of nothing: %v", got)
	}
	want := map[scope.Scope]uint64{}
	for revision := uint64(1); revision <= 3; revision++ {
		for _, user := range []string{"alice", "bob", "a.b *>"} {
			s := scope.Scope{Project: "default", User: user}
			want[s] = appendEffect(t, j, s, revision, want[s])
		}
	}
	if diff := cmp.Diff(want, heads()); diff != "" {
		t.Errorf("heads (-want +got):\n%s", diff)
	}
	enough := errors.New("enough")
	if err := j.Heads(bounded(t), func(audit.Head) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("err = %v, want that of yield", err)
	}
}

// A reader whose consumer is replaced goes on with the newest of each scope, not
// with all that is left.
func TestHeadsStayHeadsBehindAReconnect(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	writer := broker.NewJournal(env.JS)
	want := map[scope.Scope]uint64{}
	for n := range 60 {
		s := scope.Scope{Project: "default", User: fmt.Sprintf("%02d", n)}
		for revision := uint64(1); revision <= 4; revision++ {
			want[s] = appendEffect(t, writer, s, revision, want[s])
		}
	}
	made, err := env.Conn.SubscribeSync("$JS.EVENT.ADVISORY.CONSUMER.CREATED." + topology.StreamAudit + ".>")
	if err != nil {
		t.Fatal(err)
	}
	conn := env.Connect(t)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	connected := conn.StatusChanged(nats.CONNECTED)
	got, told := map[scope.Scope]uint64{}, 0
	err = broker.NewJournal(js).Heads(bounded(t), func(h audit.Head) error {
		got[h.Scope] = h.Sequence
		if told++; told == 3 {
			if err := conn.ForceReconnect(); err != nil {
				return err
			}
			select {
			case <-connected:
			case <-bounded(t).Done():
			}
		}
		return conn.FlushWithContext(bounded(t)) // the reader learns of it meanwhile
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || told != len(want) {
		t.Errorf("%d heads of %d scopes (-want +got):\n%s", told, len(want), diff)
	}
	for range 2 {
		if _, err := made.NextMsgWithContext(bounded(t)); err != nil {
			t.Fatalf("the consumer was not replaced: %v", err)
		}
	}
}

// A scope whose effects were all trimmed by age or size goes on; one that lost
// its newest effect in another way must not.
func TestAppendBehindWhatWasTrimmed(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	alice, bob := scope.Scope{Project: "default", User: "alice"}, scope.Scope{Project: "default", User: "bob"}
	j := broker.NewJournal(env.JS)
	after := appendEffect(t, j, alice, 1, 0)
	last := appendEffect(t, j, bob, 1, 0)
	stream, err := env.JS.Stream(bounded(t), topology.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(bounded(t), jetstream.WithPurgeSequence(last)); err != nil {
		t.Fatal(err)
	}
	if next := appendEffect(t, j, alice, 2, after); next <= last {
		t.Errorf("appended at %d", next)
	}
	// Another writer that knows no better finds the newer effect.
	meta, effect := audittest.JournalEffect(alice, 3, "b")
	if _, err := j.Append(bounded(t), meta, effect, after); !errors.Is(err, audit.ErrConflict) {
		t.Errorf("err = %v, want a conflict", err)
	}
	meta, effect = audittest.JournalEffect(bob, 9, "b")
	if _, err := j.Append(bounded(t), meta, effect, 900); !errors.Is(err, audit.ErrConflict) {
		t.Errorf("a store ahead of the stream: err = %v, want a conflict", err)
	}
}

// All spans every scope of every project, and Begin says what was dropped.
func TestTapeIsTheWholeStream(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	j := broker.NewJournal(env.JS)
	if begin, err := j.Begin(bounded(t)); err != nil || begin > 1 {
		t.Errorf("an empty stream begins at %d, %v", begin, err)
	}
	var want []uint64
	last := map[scope.Scope]uint64{}
	for revision := uint64(1); revision <= 4; revision++ {
		for _, s := range []scope.Scope{{Project: "p", User: "ann"}, {Project: "q", User: "ann"}, {Project: "q", Agent: "bot", Session: "*"}} {
			last[s] = appendEffect(t, j, s, revision, last[s])
			want = append(want, last[s])
		}
	}
	all := func(after uint64) (got []uint64) {
		t.Helper()
		for e, err := range j.All(bounded(t), after) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Sequence)
		}
		return got
	}
	if diff := cmp.Diff(want, all(0)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[11:], all(want[10])); diff != "" {
		t.Errorf("all behind %d (-want +got):\n%s", want[10], diff)
	}
	stream, err := env.JS.Stream(bounded(t), topology.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(bounded(t), jetstream.WithPurgeSequence(want[5])); err != nil {
		t.Fatal(err)
	}
	if begin, err := j.Begin(bounded(t)); err != nil || begin != want[5] {
		t.Errorf("the stream begins at %d, %v, want %d", begin, err, want[5])
	}
	if diff := cmp.Diff(want[5:], all(0)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}
