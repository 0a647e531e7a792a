package cli

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

// console is a pseudo-terminal with a person at it.
type console struct {
	t        *testing.T
	tty, own *os.File
}

func newConsole(t *testing.T) *console {
	t.Helper()
	own, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	if err := own.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Logf("no bound for reads: %v", err)
	}
	return &console{t: t, tty: tty, own: own}
}

// run runs a command on the terminal to its end, types answer at its question, and
// returns what the screen showed.
func (c *console) run(answer string, environ []string, args ...string) (code int, shown string) {
	c.t.Helper()
	ended := make(chan int, 1)
	go func() {
		code := run(c.t.Context(), args, terminal.Terminal{In: c.tty, Out: c.tty, Err: c.tty, Environ: environ})
		_ = c.tty.Close() // ends the reads of the other side
		ended <- code
	}()
	var text strings.Builder
	for from := bufio.NewReader(c.own); ; {
		b, err := from.ReadByte()
		if err != nil {
			break
		}
		if text.WriteByte(b); answer != "" && strings.HasSuffix(text.String(), "[y/N] ") {
			if _, err := c.own.WriteString(answer); err != nil {
				c.t.Fatal(err)
			}
			answer = ""
		}
	}
	return <-ended, text.String()
}

func TestDeleteScopeAsks(t *testing.T) {
	t.Parallel()
	for answer, deleted := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "yesterday\n": false, "\x04": false} {
		sent := false
		address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			sent = true
			_ = json.NewEncoder(w).Encode(api.Written{Status: "done", Closed: new(int)})
		})
		code, shown := newConsole(t).run(answer, nil, "--server", address, "delete-scope", "--user", "a/b 🔬")
		if !strings.Contains(shown, `Close all facts of user "a/b 🔬" in project "default"? [y/N] `) {
			t.Errorf("%q: %q", answer, shown)
		}
		want, says := exitError, "nothing is changed"
		if deleted {
			want, says = exitOK, "closed 0 facts"
		}
		if sent != deleted || code != want || !strings.Contains(shown, says) {
			t.Errorf("%q: sent %v, code %d, %q", answer, sent, code, shown)
		}
	}
}

func TestColoursAreForTerminals(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(-time.Hour)
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.FactPage{Facts: []api.Fact{{ID: "f", Text: "x", ValidFrom: past, ValidUntil: &past}}})
	})
	args := []string{"--server", address, "facts", "--all-users", "--closed"}
	for name, c := range map[string]struct {
		environ []string
		colours bool
	}{
		"terminal":       {nil, true},
		"empty NO_COLOR": {[]string{"NO_COLOR="}, true},
		"NO_COLOR":       {[]string{"NO_COLOR=1"}, false},
		"dumb":           {[]string{"TERM=dumb"}, false},
	} {
		code, shown := newConsole(t).run("", c.environ, args...)
		if code != exitOK || strings.Contains(shown, "\x1b[1mID") != c.colours || strings.Contains(shown, "\x1b[2mf ") != c.colours ||
			strings.Contains(shown, "\x1b") != c.colours || !strings.Contains(shown, "closed 1 hour ago") {
			t.Errorf("%s: code %d, %q", name, code, shown)
		}
	}
	if _, out, _ := call(t, args...); strings.Contains(out, "\x1b") {
		t.Errorf("not on a terminal: %q", out)
	}
}
