package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	t.Parallel()
	ten := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, c := range []struct {
		of   []float64
		p    float64
		want float64
	}{
		{ten, 50, 5}, {ten, 95, 10}, {ten, 99, 10}, {ten, 10, 1}, {ten, 11, 2}, {ten, 0, 1}, {ten, 100, 10},
		{[]float64{7}, 50, 7}, {[]float64{7}, 99, 7},
		{[]float64{1, 2, 3}, 50, 2},
	} {
		if got := percentile(c.of, c.p); got != c.want {
			t.Errorf("p%g of %v = %g, want %g", c.p, c.of, got, c.want)
		}
	}
}

func TestSpreadHoldsWhatTheRoundsGave(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rounds := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 20).Draw(t, "rounds")
		given := append([]float64(nil), rounds...)
		s := spread(unitMillis, rounds)
		below, above := 0, 0
		for _, x := range rounds {
			if x < s.Min || x > s.Max {
				t.Fatalf("%g is outside %+v", x, s)
			}
			if x <= s.Median {
				below++
			}
			if x >= s.Median {
				above++
			}
		}
		if 2*below < len(rounds) || 2*above < len(rounds) || s.N != len(rounds) {
			t.Fatalf("%+v of %v", s, rounds)
		}
		if diff := cmp.Diff(given, rounds); diff != "" {
			t.Fatalf("the rounds were changed: %s", diff)
		}
	})
}

func TestRatiosAreDividedWithinARound(t *testing.T) {
	t.Parallel()
	// The machine is half as fast in the second round: no ratio changes.
	f := pair{ours: []float64{80, 40, 90}, limit: []float64{100, 50, 100}}.over("a", unitMessages, Higher, 0.85)
	want := Figure{
		Name: "a", Spread: Spread{Unit: unitRatio, Median: 0.8, Min: 0.8, Max: 0.9, N: 3}, Better: Higher, Target: 0.85,
		Ours:  &Spread{Unit: unitMessages, Median: 80, Min: 40, Max: 90, N: 3},
		Limit: &Spread{Unit: unitMessages, Median: 100, Min: 50, Max: 100, N: 3},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
}

func TestTargetsBoundOneWay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		better         Better
		target, median float64
		missed         bool
	}{
		{Higher, 0.8, 0.79, true},
		{Higher, 0.8, 0.8, false},
		{Lower, 1.5, 1.51, true},
		{Lower, 1.5, 1.5, false},
		{Lower, 0, 1e9, false}, // it has none
	} {
		f := Figure{Better: c.better, Target: c.target, Spread: Spread{Median: c.median}}
		if f.Missed() != c.missed {
			t.Errorf("%+v: missed %v, want %v", f, f.Missed(), c.missed)
		}
	}
}

func sample() Report {
	return Report{Version: "v1", Go: "go1.26", Platform: "linux/amd64", CPUs: 2, Rounds: 3, Measures: []Measure{
		{Name: "publish", About: "acks", Figures: []Figure{
			pair{ours: []float64{80, 90, 85}, limit: []float64{100, 100, 100}}.over("publish.sync", unitMessages, Higher, 0.9),
		}},
		{Name: "idle", About: "nothing", Figures: []Figure{
			{Name: "idle.memory", Spread: spread(unitMiB, []float64{47, 48, 49}), Better: Lower, Target: 80},
		}},
	}}
}

func TestReportStatesUnitsCountsAndSpread(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := sample().Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"go1.26 linux/amd64, 2 CPUs", "median of 3 rounds",
		"publish.sync  0.85 ×  0.8–0.9  3  ≥ 0.9 missed  85 msg/s  100 msg/s",
		"idle.memory  48 MiB  47–49    3  ≤ 80 met  -     -",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

func TestReportSurvivesItsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bench.json")
	text, err := json.Marshal(sample())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Error(diff)
	}
}

func TestLoadRefusesWhatIsNoReport(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"not JSON": "x", "another file": `{"a":1}`, "empty": ""} {
		path := filepath.Join(t.TempDir(), "bench.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "read earlier report") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNumbersShowThreeDigits(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]string{
		0: "0", 1: "1", 0.8: "0.8", 0.0213: "0.0213", 12.34: "12.3", 123.4: "123", 123456.7: "123457", 0.00001: "0",
	} {
		if got := number(x); got != want {
			t.Errorf("number(%g) = %q, want %q", x, got, want)
		}
	}
}
