package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"

	"palimpsest/internal/bench"
)

// TestBenchmarksRun: every measure of `palimpsest bench` gives figures, against
// itself without a regression that fails the call, and leaves nothing behind.
func TestBenchmarksRun(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := filepath.Join(t.TempDir(), "bench.json")
	_, complaint, code := run(t, nil, "bench", "--quick", "--rounds", "1", "--facts", "500", "--out", file)
	if code != 0 {
		t.Fatal(complaint)
	}
	report, err := bench.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range report.Measures {
		names = append(names, m.Name)
		for _, f := range m.Figures {
			if f.Median <= 0 && !mayBeNone(f.Name) || f.Min > f.Median || f.Max < f.Median || f.N < 1 || f.Unit == "" {
				t.Errorf("figure %+v", f)
			}
			if f.Unit == "×" && (f.Ours == nil || f.Limit == nil) {
				t.Errorf("%s does not say what it is made of", f.Name)
			}
		}
	}
	if got, want := strings.Join(names, " "), strings.Join(bench.Names(), " "); got != want {
		t.Errorf("measured %s, want %s", got, want)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// mayBeNone reports whether a figure may be 0 or, as files shrink, less.
func mayBeNone(figure string) bool {
	return figure == "storm.refused" || strings.Contains(figure, ".growth.")
}

// TestBenchmarksFailOnRegression: with the flag for it, a much worse figure than
// before makes the exit code 1.
func TestBenchmarksFailOnRegression(t *testing.T) {
	t.Parallel()
	before := filepath.Join(t.TempDir(), "before.json")
	text, err := json.Marshal(bench.Report{Measures: []bench.Measure{{Name: "idle", Figures: []bench.Figure{{
		Name: "idle.binary", Spread: bench.Spread{Unit: "MiB", Median: 1, Min: 1, Max: 1, N: 1}, Better: bench.Lower,
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(before, text, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"bench", "--quick", "--rounds", "1", "--only", "idle", "--compare", before}
	out, complaint, code := run(t, nil, args...)
	if code != 0 || !strings.Contains(out, "worse") {
		t.Errorf("code %d, %s\n%s", code, complaint, out)
	}
	_, complaint, code = run(t, nil, append(args, "--fail-on-regression")...)
	if code != 1 || !strings.Contains(complaint, "1 figures are worse than in ") {
		t.Errorf("code %d, %s", code, complaint)
	}
}

// TestBenchmarksLeaveNoProcess: what bench started ends with it, also when it is
// killed in the midst of a measure.
func TestBenchmarksLeaveNoProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	measuring := exec.Command(program, "bench", "--only", "lag")
	measuring.Env = append(os.Environ(), "TMPDIR="+dir)
	if err := measuring.Start(); err != nil {
		t.Fatal(err)
	}
	locks := filepath.Join(dir, "*", "*", "memory.db.lock")
	eventually(t, "a peer", func() error {
		found, err := filepath.Glob(locks)
		if err == nil && len(found) == 0 {
			err = errors.New("it has no store yet")
		}
		return err
	})
	if err := measuring.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = measuring.Wait() // it was killed
	found, err := filepath.Glob(locks)
	if err != nil || len(found) != 1 {
		t.Fatalf("locks %v, %v", found, err)
	}
	lock := flock.New(found[0])
	eventually(t, "the end of the peer", func() error {
		free, err := lock.TryLock()
		if err == nil && !free {
			err = errors.New("its store is in use")
		}
		return errors.Join(err, lock.Unlock())
	})
}
