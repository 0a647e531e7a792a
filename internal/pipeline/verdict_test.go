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
		"held by dying processes":         {attempt{deliveries: 21, tries: 21, uptime: 5 * time.Second}, actHandle, ""},
		"held by very many":               {attempt{deliveries: 9000, tries: 9000, uptime: time.Hour}, actHandle, ""},
		"young process":                   {attempt{deliveries: 21, tries: 21, uptime: 5*time.Second - 1}, actDefer, ""},
		"young process, no suspicion":     {attempt{deliveries: 20, tries: 20}, actHandle, ""},
		"second trial, young process":     {attempt{deliveries: 22, tries: 22, trials: 1, uptime: 20*time.Second - 1}, actDefer, ""},
		"second trial":                    {attempt{deliveries: 22, tries: 22, trials: 1, uptime: 20 * time.Second}, actHandle, ""},
		"last trial, young process":       {attempt{deliveries: 23, tries: 23, trials: 2, uptime: 80*time.Second - 1}, actDefer, ""},
		"last trial":                      {attempt{deliveries: 23, tries: 23, trials: 2, uptime: 80 * time.Second}, actHandle, ""},
		"kills the process":               {attempt{deliveries: 24, tries: 24, trials: 3}, actBury, events.CodePoison},
		"kills the process, pinned":       {attempt{deliveries: 24, tries: 24, trials: 3, ordered: true}, actBury, events.CodePoison},
		"answered on trial":               {attempt{handled: true, deliveries: 23, tries: 23, trials: 3, onTrial: true}, actAck, ""},
		"fails on trial":                  {attempt{handled: true, err: plain, deliveries: 23, tries: 23, trials: 3, onTrial: true, strikes: 1}, actWait, ""},
		"trials cannot be counted":        {attempt{err: plain, deliveries: 21, tries: 21, uptime: time.Hour}, actWait, ""},
		"handled":                         {attempt{handled: true, deliveries: 1, tries: 1}, actAck, ""},
		"handled at last":                 {attempt{handled: true, deliveries: 20, tries: 90}, actAck, ""},
		"undecodable":                     {attempt{err: field, deliveries: 1, tries: 1}, actBury, events.CodeInvalidField},
		"refused field":                   {attempt{handled: true, err: field, deliveries: 1, tries: 1}, actBury, events.CodeInvalidField},
		"reject":                          {attempt{handled: true, err: Reject("x", "f", plain), deliveries: 1, tries: 1}, actBury, "x"},
		"reject wins over unknown":        {attempt{handled: true, err: Reject("x", "f", unknown), deliveries: 1, tries: 1}, actBury, "x"},
		"outage":                          {attempt{handled: true, err: plain, deliveries: 1, tries: 1, strikes: 1}, actWait, ""},
		"long outage":                     {attempt{handled: true, err: plain, deliveries: 1, tries: 900, strikes: 19}, actWait, ""},
		"own fault too often":             {attempt{handled: true, err: plain, deliveries: 1, tries: 20, strikes: 20}, actBury, events.CodePoison},
		"postponed":                       {attempt{handled: true, err: Later(time.Second, plain), deliveries: 1, tries: 1}, actNak, ""},
		"postponed for the 500th time":    {attempt{handled: true, err: Later(time.Second, plain), deliveries: 500, tries: 500, strikes: 19}, actNak, ""},
		"panic":                           {attempt{handled: true, err: &panicked{}, deliveries: 1, tries: 1, strikes: 1}, actNak, ""},
		"panic, pinned":                   {attempt{handled: true, err: &panicked{}, deliveries: 1, tries: 1, strikes: 1, ordered: true}, actWait, ""},
		"panic after many deliveries":     {attempt{handled: true, err: &panicked{}, deliveries: 60, tries: 60, strikes: 1, trials: 2, onTrial: true}, actNak, ""},
		"panic after a long outage":       {attempt{handled: true, err: &panicked{}, deliveries: 1, tries: 900, strikes: 2, ordered: true}, actWait, ""},
		"panic too often":                 {attempt{handled: true, err: &panicked{}, deliveries: 1, tries: 20, strikes: 20, ordered: true}, actBury, events.CodePoison},
		"panic on every trial":            {attempt{handled: true, err: &panicked{}, deliveries: 23, tries: 23, strikes: 1, trials: 3, onTrial: true}, actBury, events.CodePoison},
		"unknown kind, young":             {attempt{err: unknown, deliveries: 1, tries: 1, age: time.Hour - 1}, actNak, ""},
		"unknown kind, young, many tries": {attempt{err: unknown, deliveries: 30, tries: 30, age: time.Minute}, actNak, ""},
		"unknown kind, young, pinned":     {attempt{err: unknown, deliveries: 1, tries: 1, age: time.Minute, ordered: true}, actWait, ""},
		"unknown kind, old":               {attempt{err: unknown, deliveries: 1, tries: 1, age: time.Hour}, actBury, events.CodeUnknownKind},
	} {
		got := Config{}.WithDefaults().judge(c.in, 0.5)
		if got.action != c.want || got.code != c.code {
			t.Errorf("%s: %s %q, want %s %q", name, got.action, got.code, c.want, c.code)
		}
		if (got.delay > 0) != (c.want == actNak || c.want == actWait || c.want == actDefer) {
			t.Errorf("%s: delay %v", name, got.delay)
		}
	}
}

// A process that something else kills within the rest before the last trial
// buries nothing, however often it dies, and however slow its handlers are.
func TestCrashLoopFromElsewhereBuriesNothing(t *testing.T) {
	t.Parallel()
	cfg := Config{}.WithDefaults()
	rapid.Check(t, func(t *rapid.T) {
		longest := int64(cfg.TrialRest<<(2*(maxTrials-1))) - 1
		lives := rapid.SliceOfN(rapid.Int64Range(0, longest), 1, 200).Draw(t, "lives")
		trials := 0
		for deaths, life := range lives {
			a := attempt{deliveries: deaths + 1, tries: deaths + 1, trials: trials}
			v := cfg.judge(a, 0.5)
			for v.action == actDefer && a.uptime+v.delay <= time.Duration(life) {
				a.uptime += v.delay
				v = cfg.judge(a, 0.5)
			}
			switch {
			case v.action == actBury:
				t.Fatalf("buried after %d deaths: %s", deaths, v.reason)
			case v.action == actHandle && a.deliveries > cfg.MaxDeliveries:
				trials++ // and the process dies before the handler answers
			}
		}
	})
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

// The deliveries that the grace of an unknown kind spends must not bring the
// message to trial in the version that knows it.
func TestUnknownKindStaysBelowTrial(t *testing.T) {
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
