package cli

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestCompletions checks the completions of a command line in COMP_LINE, which
// shells set.
func TestCompletions(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"palimpsest del":                               {"delete-scope"},
		"palimpsest holds ":                            {"dismiss", "list", "release"},
		"palimpsest end-session s --ca":                {"--cause"},
		"palimpsest end-session s --cause ":            {"disconnect", "explicit", "timeout"},
		"palimpsest --server x delete-scope --s":       {"--server", "--session"},
		"palimpsest no-such-command --x":               nil,
		"palimpsest confirm 東京/👩‍🔬 --rev":              {"--revision"},
		"palimpsest config print --json | palimpsest ": nil,
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "COMP_LINE="+line, fmt.Sprint("COMP_POINT=", len(line)))
		out, err := cmd.Output()
		got := strings.Fields(string(out))
		slices.Sort(got)
		if err != nil || want != nil && !slices.Equal(got, want) {
			t.Errorf("%q: %v, %q, want %q", line, err, got, want)
		}
	}
}

// TestShellsComplete types the begin of a command into each shell there is, and
// its key for completion.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	for shell, args := range map[string][]string{
		"bash": {"--norc", "--noprofile", "-i"},
		"zsh":  {"-f", "-i"},
		"fish": {"--no-config", "-i"},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("no " + shell + " here")
			}
			code, script, complaint := call(t, "completion", shell)
			if code != exitOK {
				t.Fatal(complaint)
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "complete")
			if shell == "zsh" {
				script = "autoload -U compinit && compinit -D\n" + script
			}
			if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), path, args...)
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "TERM=dumb", "PS1=> ")
			screen, err := pty.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); _ = screen.Close() })
			if err := screen.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(screen, "source %s\npalimpsest delete-sc\t", file); err != nil {
				t.Fatal(err)
			}
			var shown strings.Builder
			for from := bufio.NewReader(screen); !strings.Contains(shown.String(), "delete-scope"); {
				b, err := from.ReadByte()
				if err != nil {
					t.Fatalf("%v; the screen shows %q", err, shown.String())
				}
				shown.WriteByte(b)
			}
		})
	}
}
