package memory

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDecayLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c0 := rapid.Float64Range(0, 1).Draw(t, "c0")
		rate := rapid.Float64Range(0, 2).Draw(t, "rate")
		a := time.Duration(rapid.Int64Range(0, int64(3000*day)).Draw(t, "a"))
		b := a + time.Duration(rapid.Int64Range(0, int64(3000*day)).Draw(t, "b"))
		early, late := Confidence(c0, rate, noon, noon.Add(a)), Confidence(c0, rate, noon, noon.Add(b))
		if late > early*(1+1e-12) || early > c0 || late < 0 {
			t.Fatalf("c(0)=%g c(a)=%g c(b)=%g", c0, early, late)
		}
		n := rapid.Uint64Range(1, 1_000_000).Draw(t, "n")
		if r := Reinforce(c0, rate, noon, noon.Add(a), n); r < early || r > 1 {
			t.Fatalf("reinforced %g to %g", early, r)
		}
	})
}

func TestPruneAtIsInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c0 := rapid.Float64Range(0.06, 1).Draw(t, "c0")
		rate := rapid.Float64Range(0.01, 2).Draw(t, "rate")
		at, ok := PruneAt(c0, rate, DefaultDecayThreshold, noon)
		if !ok {
			return // decades away
		}
		if c := Confidence(c0, rate, noon, at); math.Abs(c-DefaultDecayThreshold) > 1e-6 {
			t.Fatalf("confidence at prune_at is %g", c)
		}
	})
}

func TestDecayEdges(t *testing.T) {
	t.Parallel()
	if _, ok := PruneAt(1, 0, DefaultDecayThreshold, noon); ok {
		t.Error("a rate of 0 decays")
	}
	if at, ok := PruneAt(0.05, 0.1, 0.05, noon); !ok || !at.Equal(noon) {
		t.Errorf("at the threshold: %v %v", at, ok)
	}
	if c := Confidence(0.7, 0.1, noon, noon.Add(-time.Hour)); c != 0.7 {
		t.Errorf("before the last access: %g", c)
	}
}

func TestSalienceLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := Moment{
			LastAccess: noon, Now: noon.Add(time.Duration(rapid.Int64Range(-int64(day), int64(400*day)).Draw(t, "age"))),
			Accesses: rapid.Uint64().Draw(t, "n"), RuleMatches: rapid.Bool().Draw(t, "matches"),
		}
		s := SalienceV1{Tau: time.Duration(rapid.Int64Range(0, int64(30*day)).Draw(t, "tau"))}
		older := m
		older.LastAccess = noon.Add(-time.Duration(rapid.Int64Range(0, int64(100*day)).Draw(t, "older")))
		a, b := s.Score(m), s.Score(older)
		if a < 0 || a > 1 || b > a {
			t.Fatalf("score %g, older %g", a, b)
		}
		m.RuleMatches = true
		if s.Score(m) < a {
			t.Fatal("a matching rule scores lower")
		}
	})
	if got := (SalienceV1{}).Score(Moment{LastAccess: noon, Now: noon.Add(day), RuleMatches: true}); math.Abs(got-math.Exp(-1)/2) > 1e-12 {
		t.Errorf("after a day, never read: %g", got)
	}
}

// The closed form is what a nightly multiplication comes to, whatever the nights.
func TestDecayClosedFormEqualsDirectEvaluation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c0 := rapid.Float64Range(0, 1).Draw(t, "c0")
		rate := rapid.Float64Range(0, 1).Draw(t, "rate")
		direct, days := c0, 0.0
		for _, hours := range rapid.SliceOfN(rapid.IntRange(1, 72), 1, 60).Draw(t, "nights") {
			next := days + float64(hours)/24
			direct *= math.Exp(-rate * (math.Pow(next, 0.8) - math.Pow(days, 0.8)))
			days = next
		}
		closed := Confidence(c0, rate, noon, noon.Add(time.Duration(days*float64(day))))
		if math.Abs(direct-closed) > 1e-9 {
			t.Fatalf("after %g days %g, directly %g", days, closed, direct)
		}
	})
}

type rated float64

func (r rated) Rate(Moment) float64 { return float64(r) }

func TestSalienceV2AndV3Laws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		share := func(name string) float64 { return rapid.Float64Range(-1, 2).Draw(t, name) }
		m := Moment{
			LastAccess: noon, Now: noon.Add(time.Duration(rapid.Int64Range(-int64(day), int64(400*day)).Draw(t, "age"))),
			Relevance: share("relevance"), Importance: share("importance"),
		}
		v2 := SalienceV2{Tau: time.Duration(rapid.Int64Range(0, int64(30*day)).Draw(t, "tau"))}
		older, nearer := m, m
		older.LastAccess = noon.Add(-time.Duration(rapid.Int64Range(0, int64(100*day)).Draw(t, "older")))
		nearer.Relevance++
		a := v2.Score(m)
		if a < 0 || a > 1 || v2.Score(older) > a || v2.Score(nearer) < a {
			t.Fatalf("score %g, older %g, nearer %g", a, v2.Score(older), v2.Score(nearer))
		}
		if v3 := (SalienceV3{v2, rated(m.Importance)}).Score(Moment{LastAccess: m.LastAccess, Now: m.Now, Relevance: m.Relevance}); v3 != a {
			t.Fatalf("version 3 scores %g with the importance of version 2, which scores %g", v3, a)
		}
	})
	m := Moment{LastAccess: noon, Now: noon.Add(2 * day), Relevance: 0.5, Importance: 1}
	if got, want := (SalienceV2{Tau: 2 * day}).Score(m), 0.4*math.Exp(-1)+0.4*0.5+0.2; math.Abs(got-want) > 1e-12 {
		t.Errorf("score %g, want %g", got, want)
	}
}
