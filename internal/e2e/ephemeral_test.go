package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client/clienttest"
)

// TestEphemeral: a test of a user starts a Palimpsest of its own, of which nothing is
// left at the end.
func TestEphemeral(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv(clienttest.Program, program)
	t.Run("of a user", func(t *testing.T) {
		s := clienttest.Start(t)
		w, err := s.Record(t.Context(), api.Record{Scope: api.Scope{User: "nora"}, Messages: api.Messages{{Content: "I live in Oslo."}}, Wait: true}, "")
		if err != nil || len(w.Results) != 1 || w.Results[0].Memory != "The user lives in Oslo." {
			t.Errorf("%+v, %v", w, err)
		}
		if in, err := filepath.Glob(filepath.Join(dir, "palimpsest-*", "*")); err != nil || len(in) == 0 {
			t.Errorf("the data is not in the temporary directory: %v", err)
		}
	})
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, stderr, code := run(t, nil, "up", "--ephemeral", "--data", dir); code != 1 {
		t.Errorf("with --data: %d %s", code, stderr)
	}
}
