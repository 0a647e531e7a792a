package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"palimpsest/internal/eval"
)

// TestEvalExtraction measures the rule packs on their own corpora.
func TestEvalExtraction(t *testing.T) {
	t.Setenv("PALIMPSEST_LOG_LEVEL", "error")
	out := filepath.Join(t.TempDir(), "outcomes.jsonl")
	if code := Main(t.Context(), []string{"eval", "extraction", "--data", "../extract/rulepack/testdata", "--out", out}); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	set, err := eval.LoadUtterances("../extract/rulepack/testdata")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(raw, []byte("\n")); lines != len(set) {
		t.Errorf("%d outcomes of %d utterances", lines, len(set))
	}
}
