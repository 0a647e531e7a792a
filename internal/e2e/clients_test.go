package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTypedClients: the examples of the generated clients record, search, and read a
// problem.
func TestTypedClients(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	python, err := filepath.Abs(filepath.Join(root, ".cache", "clients", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{
		"typescript": {"node", filepath.Join(root, "clients", "typescript", "dist", "example.js")},
		"python":     {python, filepath.Join(root, "clients", "python", "example.py")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, file := range words {
				if _, err := os.Stat(file); err != nil && file != "node" {
					t.Skip("the client is not generated: make clients")
				}
			}
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			out, err := exec.CommandContext(ctx, words[0], append(words[1:], i.HTTP)...).CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, want := range []string{"The user lives in Oslo.", "scope_missing"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q: %s", want, out)
				}
			}
		})
	}
}
