package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// partition is one of EPISODES.
func partition(n int) Partition {
	return Partition{Reader: fmt.Sprintf("reader-%02d", n), Filter: fmt.Sprintf("palimpsest.episodes.%d.>", n)}
}

// seen records the messages that a handler got, by key, and makes it fail.
type seen struct {
	mu    sync.Mutex
	ids   map[string][]string
	sizes []int
	new   chan string
	fail  func(in []*Entry) error
}

func newSeen() *seen { return &seen{ids: map[string][]string{}, new: make(chan string, 10_000)} }

func (s *seen) handle(_ context.Context, in []*Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sizes = append(s.sizes, len(in))
	if s.fail != nil {
		if err := s.fail(in); err != nil {
			return err
		}
	}
	for _, e := range in {
		if e.Err == nil {
			s.ids[e.Key] = append(s.ids[e.Key], e.Meta.ID)
			s.new <- e.Meta.ID
		}
	}
	return nil
}

// order returns the handled messages of a key, without repetitions.
func (s *seen) order(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, id := range s.ids[key] {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// one is a log of all of EPISODES with one reader.
func one(cursors *fakeCursors, h LogHandler) Log {
	return Log{
		Name: "log", Stream: "EPISODES", Partitions: []Partition{{Reader: "reader", Filter: "palimpsest.episodes.>"}},
		Cursors: cursors, Shares: cursors, Handle: h,
	}
}

// caughtUp waits until the cursor of a reader stands at a sequence.
func (b *bench) caughtUp(cursors *fakeCursors, reader string, sequence uint64) {
	b.tb.Helper()
	b.eventually(fmt.Sprintf("the cursor stands at %d", sequence), func() bool { return cursors.of(reader).Sequence == sequence })
}

// TestP3LogKeepsOrder: each partition is handled in stream order, across restarts
// of the runtime and the server.
func TestP3LogKeepsOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors, got := &fakeCursors{}, newSeen()
	log := one(cursors, got.handle)
	log.Partitions = inPartitions()
	for round := range 3 {
		_, stop := b.start(quickConfig(), ReadLog(log))
		for i := range 30 {
			for _, who := range []string{"ann", "bob", "eve"} {
				b.say(user(who), fmt.Sprintf("%s %03d", who, 30*round+i))
			}
		}
		for _, who := range []string{"ann", "bob", "eve"} {
			b.eventually(who+" is read", func() bool { return len(got.order(user(who).Fact().String())) == 30*(round+1) })
		}
		stop()
	}
	for key, ids := range got.ids {
		if !slices.IsSorted(ids) || len(ids) != 90 {
			t.Errorf("%s: %d handled: %v", key, len(ids), ids)
		}
	}
}

// TestLogGoesOnFromItsCursor: messages that were handled before a clean stop are not
// handled again.
func TestLogGoesOnFromItsCursor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors := &fakeCursors{}
	for round := range 2 {
		got := newSeen()
		_, stop := b.start(quickConfig(), ReadLog(one(cursors, got.handle)))
		for i := range 5 {
			b.say(user("ann"), fmt.Sprintf("%d-%d", round, i))
		}
		for range 5 {
			if id := await(t, got.new); !strings.HasPrefix(id, fmt.Sprint(round)) {
				t.Errorf("round %d is given %s", round, id)
			}
		}
		stop()
		if c := cursors.of("reader"); c.Sequence != uint64(5*(round+1)) || c.Starts != 0 || c.Alone != 0 {
			t.Errorf("cursor %+v", c)
		}
	}
}

// TestLogFollowersArePublished: the payloads of a handler are published before the
// cursor moves.
func TestLogFollowersArePublished(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors := &fakeCursors{}
	b.start(quickConfig(), ReadLog(one(cursors, func(_ context.Context, in []*Entry) error {
		for _, e := range in {
			e.Out = []events.Payload{events.EpisodeStored{
				Header: events.Header{Scope: e.Meta.Scope.Fact()}, EpisodeID: e.Meta.ID, LastOrdinal: 1, StoredAt: e.Meta.Time,
			}}
		}
		return nil
	})))
	b.say(user("ann"), "hello")
	b.caughtUp(cursors, "reader", 1)
	meta := b.first("STORED")
	if want := events.HashID("hello", string(events.KindEpisodeStored), "0"); meta.ID != want || meta.CausationID != "hello" {
		t.Errorf("meta %+v, want id %s", meta, want)
	}
}

// TestLogBuriesRefusedMessages: refused messages go to the dead letters, and no later
// message waits for them.
func TestLogBuriesRefusedMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors, got := &fakeCursors{}, newSeen()
	got.fail = func(in []*Entry) error {
		for _, e := range in {
			if e.Meta.ID == "bad" {
				e.Err = Rejectf("no", "content", "is bad")
			}
		}
		return nil
	}
	b.start(quickConfig(), ReadLog(one(cursors, got.handle)))
	if _, err := b.js.Publish(b.context(), "palimpsest.episodes.p._._._", []byte(`{"content":"of nobody"}`)); err != nil {
		t.Fatal(err)
	}
	b.say(user("ann"), "bad")
	b.say(user("ann"), "good")
	if id := await(t, got.new); id != "good" {
		t.Errorf("handled %s", id)
	}
	b.caughtUp(cursors, "reader", 3)
	codes := []string{}
	for _, l := range b.deadLetters(2) {
		codes = append(codes, l.Code)
	}
	if slices.Sort(codes); !slices.Equal(codes, []string{"no", events.CodeScopeMissing}) {
		t.Errorf("letters %v", codes)
	}
}

// TestLogRetriesOneKey: while the messages of one key fail, those of others go on,
// the cursor stays below the first of them, and their order holds in the end.
func TestLogRetriesOneKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors, got := &fakeCursors{}, newSeen()
	down := true
	annKey := user("ann").Fact().String()
	got.fail = func(in []*Entry) error {
		for _, e := range in {
			if down && e.Key == annKey {
				e.Err = errors.New("its server is away")
			}
		}
		return nil
	}
	b.start(quickConfig(), ReadLog(one(cursors, got.handle)))
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("ann %02d", i))
		b.say(user("ann"), want[i])
		b.say(user("bob"), fmt.Sprintf("bob %02d", i))
	}
	b.eventually("bob is read", func() bool { return len(got.order(user("bob").Fact().String())) == 20 })
	if c := cursors.of("reader"); c.Sequence != 0 {
		t.Errorf("the cursor %+v passed what was not handled", c)
	}
	got.mu.Lock()
	down = false
	got.mu.Unlock()
	b.caughtUp(cursors, "reader", 40)
	if ids := got.order(annKey); !slices.Equal(ids, want) {
		t.Errorf("handled %v", ids)
	}
	b.deadLetters(0)
}

// TestLogFindsThePanic: a message whose handler panics each time is buried, and none
// beside it.
func TestLogFindsThePanic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors, got := &fakeCursors{}, newSeen()
	got.fail = func(in []*Entry) error {
		if slices.ContainsFunc(in, func(e *Entry) bool { return e.Meta.ID == "bad" }) {
			panic("ouch")
		}
		return nil
	}
	for _, id := range []string{"1", "bad", "2"} {
		b.say(user("ann"), id)
		b.say(user("bob"), "of bob "+id)
	}
	b.start(quickConfig(), ReadLog(one(cursors, got.handle)))
	b.caughtUp(cursors, "reader", 6)
	if l := b.deadLetters(1)[0]; l.Code != events.CodePoison || l.MessageBuried.Sequence != 3 {
		t.Errorf("letter %+v", l)
	}
	if ids := got.order(user("ann").Fact().String()); !slices.Equal(ids, []string{"1", "2"}) {
		t.Errorf("handled %v", ids)
	}
}

// TestLogReadsAStreamThatWasMadeAnew: its sequences begin again, below the cursor.
func TestLogReadsAStreamThatWasMadeAnew(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors, got := &fakeCursors{}, newSeen()
	_, stop := b.start(quickConfig(), ReadLog(one(cursors, got.handle)))
	for i := range 5 {
		b.say(user("ann"), fmt.Sprint(i))
		await(t, got.new)
	}
	stop()
	if err := b.js.DeleteStream(b.context(), "EPISODES"); err != nil {
		t.Fatal(err)
	}
	b.stream("EPISODES", jetstream.LimitsPolicy, "palimpsest.episodes.*.*.*.*")
	b.start(quickConfig(), ReadLog(one(cursors, got.handle)))
	b.say(user("ann"), "new")
	if id := await(t, got.new); id != "new" {
		t.Errorf("handled %s", id)
	}
	b.caughtUp(cursors, "reader", 1)
}

// TestLogFollowsAStoreThatWentBack: a store that lost writes has an older cursor, from
// which all is read again.
func TestLogFollowsAStoreThatWentBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	cursors, got := &fakeCursors{}, newSeen()
	b.start(quickConfig(), ReadLog(one(cursors, got.handle)))
	for i := range 5 {
		b.say(user("ann"), fmt.Sprint(i))
		await(t, got.new)
	}
	b.caughtUp(cursors, "reader", 5)
	old := cursors.of("reader")
	old.Sequence = 2
	_ = cursors.SetCursor(b.context(), "reader", 0, old)
	for _, want := range []string{"2", "3", "4"} {
		if id := await(t, got.new); id != want {
			t.Errorf("handled %s, want %s", id, want)
		}
	}
}
