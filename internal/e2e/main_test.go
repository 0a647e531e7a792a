package e2e

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"palimpsest/internal/testengine/clickhouseserver"
)

// program is the path of the binary under test.
var program string

// builtEnv holds that path for a test that runs itself in a process of its own.
const builtEnv = "E2E_PROGRAM"

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "palimpsest-e2e-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "palimpsest")
	if built := os.Getenv(builtEnv); built != "" {
		program = built
	} else if out, err := build(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	// A race ends the program, which its test notices; no race costs it no pause.
	if err := os.Setenv("GORACE", "halt_on_error=1 atexit_sleep_ms=0"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Tests wait for processes more than they work.
	if err := errors.Join(flag.Set("test.parallel", "4"), flag.Set("rapid.checks", checks)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, name := range []string{"REDIS_URL", "CLICKHOUSE_URL", "NATS_URL"} { // the user's engines are no business of tests
		if err := os.Unsetenv(name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return clickhouseserver.Tests{M: m}.Run()
}

func build() (said []byte, err error) {
	args := append([]string{"build", "-ldflags=-w", "-o", program}, buildFlags...) // without debug information
	return exec.Command("go", append(args, "palimpsest/cmd/palimpsest")...).CombinedOutput()
}
