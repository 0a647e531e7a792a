package pipeline

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/pkg/events"
)

func TestDeadLettersAreListedRetriedAndDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	var mended atomic.Bool
	large := strings.Repeat("x", 100_000)
	handled := make(chan episode, 10)
	_, stop := b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		if !mended.Load() {
			return nil, Rejectf("broken", "content", "cannot be read yet")
		}
		handled <- in
		return nil, nil
	}))
	b.say(user("ann"), "one")
	b.deadLetters(1)
	b.say(user("bob"), "two")
	b.deadLetters(2)
	pub := &broker{js: b.js, conn: b.conn, now: time.Now, timeout: patience}
	if _, err := pub.Publish(b.context(), events.Meta{ID: "big", Source: "test"}, said(user("ann"), large)); err != nil {
		t.Fatal(err)
	}
	all := b.deadLetters(3)
	deadLetters := b.letters()
	page, cursor, err := deadLetters.List(b.context(), LetterFilter{}, 0, 2)
	if err != nil || len(page) != 2 || cursor == 0 {
		t.Fatalf("page of %d, cursor %d, %v", len(page), cursor, err)
	}
	if page, cursor, err = deadLetters.List(b.context(), LetterFilter{}, cursor, 2); err != nil || len(page) != 1 || cursor != 0 {
		t.Fatalf("second page of %d, cursor %d, %v", len(page), cursor, err)
	}
	for want, f := range map[int]LetterFilter{
		2: {User: "ann"}, 1: {Project: "p", User: "bob", Service: "worker", Code: "broken"}, 0: {Service: "other"},
	} {
		if got, _, err := deadLetters.List(b.context(), f, 0, 10); err != nil || len(got) != want {
			t.Errorf("%+v: %d letters, want %d (%v)", f, len(got), want, err)
		}
	}
	mended.Store(true)
	for i, l := range all {
		if i == 1 {
			continue
		}
		if err := deadLetters.Retry(b.context(), l.Sequence); err != nil {
			t.Fatal(err)
		}
		in := await(t, handled)
		if in.ID != l.CausationID || in.Scope.User != "ann" {
			t.Errorf("retried %s of %v", in.ID, in.Scope)
		}
	}
	if err := deadLetters.Drop(b.context(), all[1].Sequence); err != nil {
		t.Fatal(err)
	}
	if _, err := deadLetters.Show(b.context(), all[1].Sequence); !errors.Is(err, ErrNoLetter) {
		t.Errorf("show after drop: %v", err)
	}
	b.deadLetters(0)
	stop()
}

func TestRetriedRangesAreLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	_, stop := b.start(quickConfig(), Consume("TICKS", "ticks", On(func(context.Context, events.Event[events.TickIssued]) ([]events.Payload, error) {
		return nil, Rejectf("bad_rule", "rule", "no such rule")
	})))
	b.publish(tick(user("ann"), 3))
	l := b.deadLetters(1)[0]
	stop()
	if err := b.letters().Retry(b.context(), l.Sequence); err != nil {
		t.Fatal(err)
	}
	got := make(chan events.TickIssued, 1)
	b.start(quickConfig(), Consume("TICKS", "ticks", On(func(_ context.Context, in events.Event[events.TickIssued]) ([]events.Payload, error) {
		got <- in.Data
		return nil, nil
	})))
	if in := await(t, got); in.Cause != events.CauseLate || in.Range.To != 3 {
		t.Errorf("retried %+v", in)
	}
}

func TestLettersKeepWithinBounds(t *testing.T) {
	t.Parallel()
	err := errors.New(strings.Repeat("y", 100_000))
	for range 100 {
		err = Reject("x", "", err)
	}
	l := newLetter("s", conclusion{
		raw: events.Raw{
			Stream: "S", Sequence: 1, Subject: "palimpsest.x", Body: make([]byte, 64<<10),
			Header: map[string][]string{"A": {strings.Repeat("a", 1<<20)}, "B": {"b\xff"}, "Nats-Pin-Id": {"p"}},
		},
		attempt: attempt{err: err}, verdict: verdict{code: "x", reason: err.Error()},
	}, time.Now())
	if len(l.Data) != 64<<10 || l.Truncated || len(l.Causes) > maxLetterCauses || len(l.Reason) > maxLetterText+8 {
		t.Errorf("%d bytes of data, %d causes, %d of reason", len(l.Data), len(l.Causes), len(l.Reason))
	}
	if l.Headers["Nats-Pin-Id"] != nil || len(l.Headers["A"]) > 0 {
		t.Errorf("%d headers", len(l.Headers))
	}
}
