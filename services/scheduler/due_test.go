package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

func end(session string, ordinal uint64) events.SessionEnd {
	return events.SessionEnd{Session: session, LastOrdinal: ordinal, Cause: events.EndExplicit, At: noon}
}

func TestDue(t *testing.T) {
	t.Parallel()
	every1, every10 := memory.Cadence{Every: 1}, memory.Cadence{Every: 10}
	ends := memory.Cadence{SessionEnd: true}
	both := memory.Cadence{Every: 10, SessionEnd: true, Cron: "0 3 * * *"}
	tests := map[string]struct {
		cadence memory.Cadence
		at      situation
		to      uint64 // 0: not due
		cause   events.Cause
		carried int
	}{
		"nothing said":                 {every1, situation{}, 0, "", 0},
		"all consolidated":             {every1, situation{last: 5, watermark: 5}, 0, "", 0},
		"watermark ahead":              {every1, situation{last: 5, watermark: 9}, 0, "", 0},
		"every 1":                      {every1, situation{last: 6, watermark: 5}, 6, events.CauseEvery, 0},
		"every 1, several":             {every1, situation{last: 9, watermark: 5}, 9, events.CauseEvery, 0},
		"every 10, nine":               {every10, situation{last: 14, watermark: 5}, 0, "", 0},
		"every 10, ten":                {every10, situation{last: 15, watermark: 5}, 15, events.CauseEvery, 0},
		"every 10, more":               {every10, situation{last: 18, watermark: 5}, 18, events.CauseEvery, 0},
		"no end":                       {ends, situation{last: 9}, 0, "", 0},
		"an end":                       {ends, situation{last: 9, ends: []events.SessionEnd{end("a", 7)}}, 7, events.CauseSessionEnd, 1},
		"ends":                         {ends, situation{last: 9, watermark: 2, ends: []events.SessionEnd{end("b", 8), end("a", 3)}}, 8, events.CauseSessionEnd, 2},
		"an end without a rule for it": {every10, situation{last: 9, ends: []events.SessionEnd{end("a", 7)}}, 0, "", 0},
		"an end within a full ten":     {both, situation{last: 12, ends: []events.SessionEnd{end("a", 7)}}, 12, events.CauseSessionEnd, 1},
		"fired":                        {both, situation{last: 3, fired: true}, 3, events.CauseCron, 0},
		"fired, and a full ten":        {both, situation{last: 10, fired: true}, 10, events.CauseEvery, 0},
		"fired, nothing to do":         {both, situation{last: 3, watermark: 3, fired: true}, 0, "", 0},
		"a cadence that is not one":    {memory.Cadence{}, situation{last: 500}, 0, "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, ok := due(tt.cadence, tt.at)
			if ok != (tt.to > 0) {
				t.Fatalf("due = %v, %t; want to %d", r, ok, tt.to)
			}
			if !ok {
				return
			}
			if want := (events.Range{From: tt.at.watermark, To: tt.to}); r != want {
				t.Errorf("range %v, want %v", r, want)
			}
			carried := memory.EndsIn(memory.Rule{Cadence: tt.cadence}, tt.at.ends, r)
			if cause := causeOf(tt.cadence, tt.at, carried); cause != tt.cause || len(carried) != tt.carried {
				t.Errorf("cause %s with %d ends, want %s with %d", cause, len(carried), tt.cause, tt.carried)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	claim := store.Claim{Range: events.Range{From: 5, To: 9}, At: noon, Attempt: 1}
	tests := map[string]struct {
		claim     store.Claim
		watermark uint64
		now       time.Time
		want      verdict
	}{
		"none":                     {store.Claim{}, 0, noon, claimFree},
		"consolidated":             {claim, 9, noon, claimFree},
		"overtaken":                {claim, 12, noon, claimFree},
		"under way":                {claim, 5, noon.Add(time.Second), claimTaken},
		"partly":                   {claim, 7, noon.Add(time.Second), claimTaken},
		"the watermark lags":       {claim, 0, noon.Add(time.Second), claimTaken},
		"second attempt has twice": {claim, 5, noon.Add(119 * time.Second), claimTaken},
		"late":                     {claim, 5, noon.Add(120 * time.Second), claimLate},
		"the clock was set back":   {claim, 5, noon.Add(-time.Hour), claimLate},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := judge(tt.claim, tt.watermark, tt.now, time.Minute, time.Hour); got != tt.want {
				t.Errorf("judge = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPatience(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		attempt := rapid.IntRange(0, 100_000).Draw(rt, "attempt")
		d, next := patience(attempt, time.Minute, time.Hour), patience(attempt+1, time.Minute, time.Hour)
		if d < time.Minute || d > time.Hour || next < d {
			rt.Fatalf("%v, then %v", d, next)
		}
	})
}

func TestSuccessor(t *testing.T) {
	t.Parallel()
	late := store.Claim{Range: events.Range{From: 5, To: 9}, At: noon, Attempt: 1}
	want := store.Claim{Range: events.Range{From: 5, To: 9}, At: noon.Add(time.Hour), Attempt: 2}
	if diff := cmp.Diff(want, successor(late, 5, noon.Add(time.Hour), 200)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := successor(late, 0, noon, 3).Range; got != (events.Range{From: 0, To: 3}) {
		t.Errorf("with the watermark far behind: %v", got)
	}
}

// TestRangesTile: in any order of episodes and ends, the ranges follow each other
// without a gap, carry each end above the watermark exactly once, and keep their
// bounds.
func TestRangesTile(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		cadence := memory.Cadence{
			Every:      rapid.Uint64Range(0, 30).Draw(rt, "every"),
			SessionEnd: rapid.Bool().Draw(rt, "session end"),
		}
		most := rapid.IntRange(1, 40).Draw(rt, "most")
		at := situation{}
		var ends []events.SessionEnd
		carried := 0
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			at.last += rapid.Uint64Range(0, 50).Draw(rt, "said")
			if at.last > at.watermark && rapid.Bool().Draw(rt, "ends") {
				ends = append(ends, end("s", at.last))
			}
			at.fired = rapid.Bool().Draw(rt, "fired")
			at.ends = nil
			for _, e := range ends {
				if e.LastOrdinal > at.watermark {
					at.ends = append(at.ends, e)
				}
			}
			r, ok := due(cadence, at)
			if !ok {
				continue
			}
			r = memory.Cut(r, most)
			if r.Empty() || r.From != at.watermark || r.To > at.last || r.Len() > uint64(most) {
				rt.Fatalf("range %v of %+v", r, at)
			}
			carried += len(memory.EndsIn(memory.Rule{Cadence: cadence}, at.ends, r))
			at.watermark = r.To
		}
		passed := 0
		for _, e := range ends {
			if e.LastOrdinal <= at.watermark {
				passed++
			}
		}
		if !cadence.SessionEnd {
			passed = 0
		}
		if carried != passed {
			rt.Fatalf("%d ends carried, %d passed by the watermark", carried, passed)
		}
	})
}
