package cli

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The exit codes of the command line.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// call runs one command.
func call(t *testing.T, args ...string) (code int, out, complaint string) {
	t.Helper()
	var o, e bytes.Buffer
	code = app.Run(t.Context(), args, terminal.Terminal{In: strings.NewReader(""), Out: &o, Err: &e}, commands()...)
	return code, o.String(), e.String()
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	away := "http://127.0.0.1:1"
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no text":         {[]string{"search"}, exitUsage, "<text>"},
		"not a number":    {[]string{"search", "--limit", "x", "y"}, exitUsage, "--limit"},
		"nobody is named": {[]string{"--server", away, "facts"}, exitError, "--all-users"},
		"all and one":     {[]string{"--server", away, "facts", "--all-users", "--user", "x"}, exitError, "--all-users"},
		"nobody answers":  {[]string{"--server", away, "facts", "--user", "x"}, exitError, "reach 127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, complaint := call(t, c.args...)
			if code != c.code || !strings.Contains(complaint, c.want) || out != "" {
				t.Errorf("code %d, output %q, complaint %q; want code %d, %q", code, out, complaint, c.code, c.want)
			}
			lines := map[int]int{exitError: 1, exitUsage: 2}[c.code] // with the hint
			if strings.Count(complaint, "\n") != lines {
				t.Errorf("complaint %q is not of %d lines", complaint, lines)
			}
		})
	}
}
