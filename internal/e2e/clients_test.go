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
	for language, file := range map[string]string{"typescript": "../../../examples/typescript/dist/quickstart.js", "python": "example.py"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			out := runClient(t, language, file, i.HTTP)
			for _, want := range []string{"The user lives in Oslo.", "scope_missing"} {
				if !strings.Contains(out, want) {
					t.Errorf("no %q: %s", want, out)
				}
			}
		})
	}
}

// TestFrameworkAdapters: each adapter behaves as the implementation of its framework
// that keeps its data in memory, and its example recalls in a second conversation what
// the first one recorded. Tests of adapters are written in the language of the adapter.
func TestFrameworkAdapters(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	for _, tc := range []struct{ language, file, want string }{
		{"python", "tests/test_langgraph.py", ""},
		{"python", "tests/test_openai_agents.py", ""},
		{"python", "tests/test_google_adk.py", ""},
		{"python", "tests/test_openwebui.py", ""},
		{"python", "examples/langgraph_agent.py", "You said: My bicycle is red."},
		{"python", "examples/openai_agents_chat.py", "I see 1 items, and you live in Oslo."},
		{"python", "examples/google_adk_agent.py", "You live in Oslo."},
		{"typescript", "tests/langgraph.test.js", "# fail 0"},
		{"typescript", "tests/openai-agents.test.js", "# fail 0"},
		{"typescript", "examples/langgraph.js", "You said: My bicycle is red."},
		{"typescript", "examples/openai-agents.js", "I see 1 items, and you live in Oslo."},
	} {
		t.Run(tc.language+"/"+tc.file, func(t *testing.T) {
			t.Parallel()
			if out := runClient(t, tc.language, tc.file, i.HTTP); !strings.Contains(out, tc.want) {
				t.Errorf("no %q: %s", tc.want, out)
			}
		})
	}
}

// runClient runs a file of the clients in a language against a server, and returns its
// output. It skips the test if make clients did not run.
func runClient(t *testing.T, language, file, server string) string {
	t.Helper()
	interpreter, folder := "node", filepath.Join(root, "clients", "typescript", "dist")
	if language == "python" {
		folder = filepath.Join(root, "clients", "python")
		var err error
		if interpreter, err = filepath.Abs(filepath.Join(root, ".cache", "clients", "python", "bin", "python")); err != nil {
			t.Fatal(err)
		}
	}
	file = filepath.Join(folder, file)
	for _, needed := range []string{file, filepath.Join(root, ".cache", "clients", "palimpsest")} {
		if _, err := os.Stat(needed); err != nil {
			t.Skipf("the client is not there (make clients): %v", err)
		}
	}
	if _, err := exec.LookPath(interpreter); err != nil {
		t.Skipf("the client is not run: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, interpreter, file, server)
	cmd.Env = append(os.Environ(), "PALIMPSEST="+server)
	tie(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
