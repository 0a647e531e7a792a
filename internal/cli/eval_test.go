package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"palimpsest/internal/eval"
)

// TestEvalRetrieval asks the questions of a small set through the whole product.
func TestEvalRetrieval(t *testing.T) {
	t.Setenv("PALIMPSEST_LOG_LEVEL", "error")
	out := filepath.Join(t.TempDir(), "figures.json")
	if code := Main(t.Context(), []string{"eval", "retrieval", "--data", "../eval/testdata/garden", "--out", out}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var report eval.Report
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, run := range report.Runs {
		names = append(names, run.Name)
		if run.All.Questions != 5 || run.Categories["context"].Questions != 1 {
			t.Errorf("%s: %+v", run.Name, run)
		}
		if run.Name == "episodes" && run.All.Recall25 < 0.9 {
			t.Errorf("%s: recall@25 %v", run.Name, run.All.Recall25)
		}
	}
	for _, want := range []string{"text", "episodes", "together"} {
		if !slices.Contains(names, want) {
			t.Errorf("no run %q in %v", want, names)
		}
	}
}

// TestEvalCompares asks with two embedders and fits weights to both.
func TestEvalCompares(t *testing.T) {
	t.Setenv("PALIMPSEST_LOG_LEVEL", "error")
	out := filepath.Join(t.TempDir(), "figures.json")
	both := []string{"--data", "../eval/testdata/garden", "--embedder", "hashed", "--embedder", "static"}
	if code := Main(t.Context(), append([]string{"eval", "retrieval", "--out", out}, both...)); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	report, err := eval.LoadReport(out)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, run := range report.Runs {
		if run.Name == "together" {
			got[run.Embedder] = run.All.Questions == 5
		}
	}
	if !got["hashed"] || !got["static"] {
		t.Errorf("runs %+v", report.Runs)
	}
	if code := Main(t.Context(), append([]string{"eval", "fit"}, both...)); code != 0 {
		t.Errorf("fit: exit code %d", code)
	}
}

// TestEvalEveryday asks what people ask of their own memory: oleg and vera speak
// Russian, wei speaks Chinese, and all others English.
func TestEvalEveryday(t *testing.T) {
	t.Setenv("PALIMPSEST_LOG_LEVEL", "error")
	out := filepath.Join(t.TempDir(), "figures.json")
	if code := Main(t.Context(), []string{"eval", "retrieval", "--data", "../eval/testdata/everyday", "--embedder", "static", "--out", out}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	report, err := eval.LoadReport(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range report.Runs {
		if run.Name != "together" {
			continue
		}
		for user, want := range map[string][2]float64{
			"dana": {0.79, 0.91}, "marcus": {0.79, 0.91}, "oleg": {0.79, 0.91},
			"nora": {0.79, 0.91}, "sam": {0.79, 0.91}, "mara": {0.79, 0.91}, "ines": {0.79, 0.91}, "tom": {0.76, 0.91}, "ben": {0.79, 0.91}, "lena": {0.79, 0.91},
			"agatha": {0.79, 0.91}, "gus": {0.73, 0.85}, "vera": {0.65, 0.85}, "wei": {0.55, 0.75},
			"jaz": {0.52, 0.76}, "beth": {0.44, 0.7}, // her questions share few words with her messages
		} {
			if got := run.Categories[user]; got.First < want[0] || got.Three < want[1] {
				t.Errorf("%s: %.3f first, %.3f among the first three, want %v", user, got.First, got.Three, want)
			}
		}
		return
	}
	t.Error("not run")
}
