package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is the program itself where a shell asks it for completions.
func TestMain(m *testing.M) {
	if os.Getenv("COMP_LINE") != "" {
		os.Exit(Main(context.Background(), os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// call runs one command. It finds no broker where others may run one.
func call(t *testing.T, args ...string) (code int, out, complaint string) {
	t.Helper()
	return callWith(t, "", []string{"PALIMPSEST_NATS_LISTEN=127.0.0.1:0"}, args...)
}

// serve answers requests as handle does, and returns the address.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(handle)
	t.Cleanup(srv.Close)
	return srv.URL
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
		"no fact":         {[]string{"confirm"}, exitUsage, "<id>"},
		"no new text":     {[]string{"correct", "deadbeef"}, exitUsage, "<text>"},
		"no revision":     {[]string{"forget", "deadbeef", "--revision", "-1"}, exitUsage, "--revision"},
		"an empty id":     {[]string{"--server", away, "restore", ""}, exitError, "identifier is empty"},
		"no session":      {[]string{"end-session"}, exitUsage, "<session>"},
		"no such cause":   {[]string{"end-session", "s", "--cause", "boredom"}, exitUsage, "--cause"},
		"no episodes":     {[]string{"episodes", "--user", "x", "--limit", "0"}, exitUsage, "--limit"},
		"no instant":      {[]string{"episodes", "--user", "x", "--after", "noon"}, exitUsage, "--after"},
		"no whose":        {[]string{"--server", away, "episodes"}, exitError, "--all-users"},
		"delete of all":   {[]string{"--server", away, "delete-scope", "--yes"}, exitError, "--user"},
		"delete of none":  {[]string{"--server", away, "delete-scope", "--yes", "--user", ""}, exitError, "--user"},
		"nobody is asked": {[]string{"--server", away, "delete-scope", "--user", "x"}, exitError, "--yes"},
		"no such server":  {[]string{"--server", "ftp://x", "confirm", "deadbeef"}, exitError, "ftp://x"},
		"away confirm":    {[]string{"--server", away, "confirm", "deadbeef"}, exitError, "reach 127.0.0.1:1"},
		"away correct":    {[]string{"--server", away, "correct", "deadbeef", "x"}, exitError, "reach 127.0.0.1:1"},
		"away forget":     {[]string{"--server", away, "forget", "deadbeef"}, exitError, "reach 127.0.0.1:1"},
		"away restore":    {[]string{"--server", away, "restore", "deadbeef"}, exitError, "reach 127.0.0.1:1"},
		"away episodes":   {[]string{"--server", away, "episodes", "--all-users"}, exitError, "reach 127.0.0.1:1"},
		"away session":    {[]string{"--server", away, "end-session", "s"}, exitError, "reach 127.0.0.1:1"},
		"away delete":     {[]string{"--server", away, "delete-scope", "--user", "x", "--yes"}, exitError, "reach 127.0.0.1:1"},
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
