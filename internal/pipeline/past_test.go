package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker/brokertest"
	"palimpsest/pkg/events"
)

func TestPastIsWhatWasHandedOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	past := NewPast(b.js, "episodes")
	read := func(after uint64) (ids []string) {
		t.Helper()
		err := past.Read(b.context(), after, func(in events.Raw, settled bool) error {
			if !settled {
				t.Error("what was acknowledged is not settled")
			}
			meta, _, err := events.Decode(in)
			ids = append(ids, meta.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	if ids := read(0); len(ids) != 0 {
		t.Errorf("before anything was said: %v", ids)
	}
	_, stop := b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) { return nil, nil }))
	said := []string{"one", "two", "three"}
	for _, id := range said {
		b.say(user("ann"), id)
	}
	b.settled("EPISODES", "episodes")
	stop()
	b.say(user("ann"), "not yet")
	if ids := read(0); !slices.Equal(ids, said) {
		t.Errorf("read %v, want %v", ids, said)
	}
	if ids := read(2); !slices.Equal(ids, said[2:]) {
		t.Errorf("behind 2: %v", ids)
	}
	if ids := read(3); len(ids) != 0 {
		t.Errorf("behind 3: %v", ids)
	}
	var newest []string
	err := past.Newest(b.context(), func(in events.Raw) (bool, error) {
		meta, _, err := events.Decode(in)
		newest = append(newest, meta.ID)
		return meta.ID == "two", err
	})
	if err != nil || !slices.Equal(newest, []string{"three", "two"}) {
		t.Errorf("newest first until enough: %v, %v", newest, err)
	}
	if begin, err := past.Begin(b.context()); err != nil || begin != 1 {
		t.Errorf("begins at %d, %v", begin, err)
	}
	enough := errors.New("enough")
	if err := past.Read(b.context(), 0, func(events.Raw, bool) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("err = %v, want that of yield", err)
	}
}

// TestPastReadsWhatGotLostOnTheWay: nothing that comes later tells a reader that the
// last message never came.
func TestPastReadsWhatGotLostOnTheWay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	_, stop := b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) { return nil, nil }))
	for i := range pastAhead + 3 {
		b.say(user("ann"), fmt.Sprint(i))
	}
	b.settled("EPISODES", "episodes")
	stop()
	read := 0
	err := NewPast(b.js, "episodes").Read(b.context(), 0, func(events.Raw, bool) error {
		if read++; read == 1 { // by now it has asked for pastAhead of them
			brokertest.Steal(t, b.js, "EPISODES", 3)
		}
		return nil
	})
	if err != nil || read != pastAhead+3 {
		t.Errorf("read %d of %d: %v", read, pastAhead+3, err)
	}
}

// TestP5PastLacksWhatWasBuried: what another attempt might have taken must not be
// taken when the stream is read again. What is refused will be refused again.
func TestP5PastLacksWhatWasBuried(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	_, stop := b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		switch in.ID {
		case "poison":
			panic("ouch")
		case "refused":
			return nil, Rejectf(events.CodeInvalidField, "content", "no")
		}
		return nil, nil
	}))
	for _, id := range []string{"refused", "taken", "poison"} {
		b.say(user("ann"), id)
	}
	b.letters(2)
	b.settled("EPISODES", "episodes")
	stop()
	past := NewPast(b.js, "episodes")
	note := func(ids *[]string, in events.Raw) error {
		meta, _, err := events.Decode(in)
		*ids = append(*ids, meta.ID)
		return err
	}
	var read, newest []string
	if err := past.Read(b.context(), 0, func(in events.Raw, _ bool) error { return note(&read, in) }); err != nil {
		t.Fatal(err)
	}
	if err := past.Newest(b.context(), func(in events.Raw) (bool, error) { return false, note(&newest, in) }); err != nil {
		t.Fatal(err)
	}
	if want := []string{"refused", "taken"}; !slices.Equal(read, want) {
		t.Errorf("read %v, want %v", read, want)
	}
	if want := []string{"taken", "refused"}; !slices.Equal(newest, want) {
		t.Errorf("newest first %v, want %v", newest, want)
	}
}

// TestP5MarkedMessageIsNotHandled: a process that dies between the mark and the
// end of what it buried has the message delivered again, and whoever took it then
// would have what no reader of the stream finds.
func TestP5MarkedMessageIsNotHandled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard(pinned)
	b.say(user("ann"), "marked")
	b.say(user("ann"), "other")
	consumer, err := b.js.Consumer(b.context(), "EPISODES", "episodes")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := consumer.Fetch(2, jetstream.FetchPriorityGroup(PinGroup), jetstream.FetchMaxWait(patience))
	if err != nil {
		t.Fatal(err)
	}
	for msg := range batch.Messages() {
		if err := msg.Nak(); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := readDirectory(b.context(), b.js)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := dir.bind(b.context(), "episodes")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.Publish(b.context(), events.BuriedSubject("episodes", bound.streamID, 1), nil); err != nil {
		t.Fatal(err)
	}
	got := newTaken()
	_, stop := b.start(quickConfig(), got.handler("second"))
	b.settled("EPISODES", "episodes")
	stop()
	b.letters(0)
	if ids := got.order(); !slices.Equal(ids, []string{"other"}) {
		t.Errorf("handled %v", ids)
	}
}
