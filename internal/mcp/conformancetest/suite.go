// Package conformancetest runs the official conformance suite of the Model Context
// Protocol against a server.
package conformancetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// patience bounds a run, which takes seconds on an idle machine.
const patience = 3 * time.Minute

// Run runs the suite against the server at url and fails the test if a scenario
// fails that the file baseline does not list, or if one that it lists passes. It
// skips the test where `make conformance` has not installed the suite below root,
// the directory of the module.
func Run(t *testing.T, root, url, baseline string) {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, ".cache", "conformance"))
	if err != nil {
		t.Fatal(err)
	}
	suite := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		t.Skip("the conformance suite is not installed: make conformance")
	}
	args := []string{suite, "server", "--url", url}
	if baseline != "" {
		args = append(args, "--expected-failures", baseline)
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	run := exec.CommandContext(ctx, filepath.Join(dir, "node"), args...)
	run.Dir = t.TempDir()
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
