package bench

import (
	"bytes"
	"strings"
	"testing"
)

// with is a report of one figure.
func with(better Better, unit string, rounds ...float64) Report {
	f := Figure{Name: "figure", Spread: spread(unit, rounds), Better: better}
	return Report{Go: "go1.26", CPUs: 2, Measures: []Measure{{Name: "m", Figures: []Figure{f}}}}
}

func TestOnlyWhatLeavesTheNoiseIsMarked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after       Report
		regressed, improved bool
	}{
		"a rate that fell":             {with(Higher, unitRatio, 0.8, 0.9, 1), with(Higher, unitRatio, 0.5, 0.6, 0.7), true, false},
		"a rate that rose":             {with(Higher, unitRatio, 0.5, 0.6, 0.7), with(Higher, unitRatio, 0.8, 0.9, 1), false, true},
		"a time that rose":             {with(Lower, unitMillis, 10, 11, 12), with(Lower, unitMillis, 13, 14, 15), true, false},
		"a time that fell":             {with(Lower, unitMillis, 13, 14, 15), with(Lower, unitMillis, 10, 11, 12), false, true},
		"a median within the noise":    {with(Higher, unitRatio, 0.5, 0.9, 1), with(Higher, unitRatio, 0.4, 0.6, 0.7), false, false},
		"the same":                     {with(Lower, unitMillis, 10), with(Lower, unitMillis, 10), false, false},
		"less than counts":             {with(Lower, unitMiB, 34.2), with(Lower, unitMiB, 34.3), false, false},
		"without noise, but it counts": {with(Lower, unitMiB, 34.2), with(Lower, unitMiB, 36), true, false},
		"from nothing":                 {with(Lower, unitMillis, 0), with(Lower, unitMillis, 0), false, false},
	} {
		got := Compare(c.before, c.after)
		if len(got.Changes) != 1 || got.Changes[0].Regressed != c.regressed || got.Changes[0].Improved != c.improved {
			t.Errorf("%s: %+v, want regressed %v, improved %v", name, got.Changes, c.regressed, c.improved)
		}
		if want := map[bool]int{true: 1}[c.regressed]; got.Regressed() != want {
			t.Errorf("%s: %d regressed, want %d", name, got.Regressed(), want)
		}
	}
}

func TestFiguresOfOneSideAreNotCompared(t *testing.T) {
	t.Parallel()
	before, after := with(Lower, unitMillis, 1), with(Lower, unitMillis, 2)
	after.Measures[0].Figures[0].Name = "another"
	if got := Compare(before, after); len(got.Changes) != 0 {
		t.Errorf("a new figure was compared: %+v", got.Changes)
	}
	if got := Compare(before, with(Lower, unitMiB, 2)); len(got.Changes) != 0 {
		t.Errorf("figures of two units were compared: %+v", got.Changes)
	}
}

func TestComparisonSaysWhatIsNotAlike(t *testing.T) {
	t.Parallel()
	before, after := with(Higher, unitRatio, 0.8, 0.9), with(Higher, unitRatio, 0.4, 0.5)
	before.CPUs, after.Quick = 8, true
	var out bytes.Buffer
	if err := Compare(before, after).Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"processors: 8 before, 2 now", "quick: false before, true now", "-47.1 %", "worse"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the comparison lacks %q:\n%s", want, out.String())
		}
	}
}
