package pipeline

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"palimpsest/pkg/events"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	plain := errors.New("connection refused")
	unknown := &events.FieldError{Field: "type", Code: events.CodeUnknownKind, Reason: "is unknown"}
	field := &events.FieldError{Field: "role", Code: events.CodeInvalidField, Reason: "is required"}
	for name, c := range map[string]struct {
		in   attempt
		want action
		code string
	}{
		"new":                             {attempt{deliveries: 1, tries: 1}, actHandle, ""},
		"last delivery":                   {attempt{deliveries: 20, tries: 20}, actHandle, ""},
		"kills the process":               {attempt{deliveries: 21, tries: 21}, actBury, events.CodePoison},
		"handled":                         {attempt{handled: true, deliveries: 1, tries: 1}, actAck, ""},
		"handled at last":                 {attempt{handled: true, deliveries: 20, tries: 90}, actAck, ""},
		"undecodable":                     {attempt{err: field, deliveries: 1, tries: 1}, actBury, events.CodeInvalidField},
		"refused field":                   {attempt{handled: true, err: field, deliveries: 1, tries: 1}, actBury, events.CodeInvalidField},
		"reject":                          {attempt{handled: true, err: Reject("x", "f", plain), deliveries: 1, tries: 1}, actBury, "x"},
		"reject wins over unknown":        {attempt{handled: true, err: Reject("x", "f", unknown), deliveries: 1, tries: 1}, actBury, "x"},
		"outage":                          {attempt{handled: true, err: plain, deliveries: 1, tries: 1, strikes: 1}, actWait, ""},
		"long outage":                     {attempt{handled: true, err: plain, deliveries: 1, tries: 900, strikes: 19}, actWait, ""},
		"outage, its project is full":     {attempt{handled: true, err: plain, deliveries: 4, tries: 4, strikes: 1, queue: true, full: true}, actNak, ""},
		"given back in a long outage":     {attempt{handled: true, err: plain, deliveries: 5, tries: 11, strikes: 1, queue: true, full: true}, actRenew, ""},
		"fails at its last delivery":      {attempt{handled: true, err: plain, deliveries: 20, tries: 20, strikes: 1, queue: true, full: true}, actRenew, ""},
		"own fault too often":             {attempt{handled: true, err: plain, deliveries: 1, tries: 20, strikes: 20}, actBury, events.CodePoison},
		"postponed, of no queue":          {attempt{handled: true, err: Later(time.Second, plain), deliveries: 5, tries: 500}, actWait, ""},
		"panic":                           {attempt{handled: true, err: &panicked{}, deliveries: 1, tries: 1, strikes: 1}, actWait, ""},
		"panic after a long outage":       {attempt{handled: true, err: &panicked{}, deliveries: 1, tries: 900, strikes: 2}, actWait, ""},
		"panic too often":                 {attempt{handled: true, err: &panicked{}, deliveries: 1, tries: 20, strikes: 20}, actBury, events.CodePoison},
		"postponed":                       {attempt{handled: true, err: Later(time.Second, plain), deliveries: 1, tries: 1, queue: true}, actNak, ""},
		"postponed for the 5th time":      {attempt{handled: true, err: Later(time.Second, plain), deliveries: 5, tries: 500, strikes: 19, queue: true}, actRenew, ""},
		"unknown kind, young":             {attempt{err: unknown, deliveries: 1, tries: 1, age: time.Hour - 1}, actNak, ""},
		"unknown kind, young, many tries": {attempt{err: unknown, deliveries: 30, tries: 30, age: time.Minute}, actNak, ""},
		"unknown kind, old":               {attempt{err: unknown, deliveries: 1, tries: 1, age: time.Hour}, actBury, events.CodeUnknownKind},
	} {
		got := Config{}.WithDefaults().judge(c.in, 0.5)
		if got.action != c.want || got.code != c.code {
			t.Errorf("%s: %s %q, want %s %q", name, got.action, got.code, c.want, c.code)
		}
		if (got.delay > 0) != (c.want == actNak || c.want == actRenew || c.want == actWait) {
			t.Errorf("%s: delay %v", name, got.delay)
		}
	}
}

func TestBackoffBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10_000).Draw(t, "n")
		jitter := rapid.Float64Range(0, 0.999999).Draw(t, "jitter")
		base, most := 100*time.Millisecond, 30*time.Second
		got, mean := backoff(n, base, most, jitter), backoff(n, base, most, 0.5)
		if got < 80*time.Millisecond || got > 36*time.Second {
			t.Fatalf("%v is out of bounds", got)
		}
		if got < mean*79/100 || got > mean*121/100 {
			t.Fatalf("%v is more than 20 %% from %v", got, mean)
		}
		if next := backoff(n+1, base, most, 0.5); next < mean || next > 2*mean+1 {
			t.Fatalf("%v follows %v", next, mean)
		}
	})
}

// TestOutageIsProbed: while nothing gets through, a message is tried again soon,
// however often it failed. One that fails while others pass waits longer.
func TestOutageIsProbed(t *testing.T) {
	t.Parallel()
	cfg := Config{}.WithDefaults()
	a := attempt{handled: true, err: errors.New("down"), deliveries: 1, tries: 1000, strikes: 1}
	if v := cfg.judge(a, 0.5); v.action != actWait || v.delay != 2*time.Second {
		t.Errorf("in an outage: %+v", v)
	}
	a.strikes = 10
	if v := cfg.judge(a, 0.5); v.action != actWait || v.delay != 30*time.Second {
		t.Errorf("by itself: %+v", v)
	}
}

// The deliveries that the grace of an unknown kind spends must not make the message
// look like poison to the version that knows it.
func TestUnknownKindStaysBelowPoison(t *testing.T) {
	t.Parallel()
	cfg := Config{}.WithDefaults()
	unknown := &events.FieldError{Field: "type", Code: events.CodeUnknownKind}
	age, deliveries := time.Duration(0), 1
	for {
		v := cfg.judge(attempt{err: unknown, deliveries: deliveries, tries: deliveries, age: age}, 0)
		if v.action == actBury {
			break
		}
		age += v.delay
		deliveries++
	}
	if deliveries > cfg.MaxDeliveries+1 {
		t.Errorf("%d deliveries", deliveries)
	}
}
