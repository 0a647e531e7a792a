package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples runs the examples in each language against one Palimpsest.
func TestExamples(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	for name, command := range map[string][]string{
		"go":     {"go", "run", "./examples/quickstart"},
		"python": {"python3", "examples/python/quickstart.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(command[0]); err != nil {
				t.Skipf("the example is not run: %v", err)
			}
			cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], "--server", i.HTTP, "--user", name)...)
			cmd.Dir = filepath.Clean(root)
			tie(cmd)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, want := range []string{"ADD The user lives in Bergen.", "found: "} {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is not in %s", want, out)
				}
			}
		})
	}
}
