package e2e

import (
	"bytes"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// TestAnAssistantIsConnected: install writes the files of an assistant, its hooks
// record the conversation and recall it in the next session, and undo removes
// everything.
func TestAnAssistantIsConnected(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	home := t.TempDir()
	command := func(in string, args ...string) string {
		t.Helper()
		run := exec.CommandContext(t.Context(), program, append([]string{"--server", i.HTTP}, args...)...)
		run.Env = append(os.Environ(), "HOME="+home, "CLAUDE_CONFIG_DIR=")
		run.Stdin = strings.NewReader(in)
		var errs bytes.Buffer
		run.Stderr = &errs
		out, err := run.Output()
		if err != nil {
			t.Fatalf("%q: %v: %s", args, err, errs.String())
		}
		if strings.Contains(errs.String(), "palimpsest hook:") {
			t.Errorf("%q: %s", args, errs.String())
		}
		return string(out)
	}
	if out := command("", "install", "claude-code", "--user", "nora", "--yes"); !strings.Contains(out, ".claude/settings.json") {
		t.Errorf("install: %s", out)
	}
	settings, err := os.ReadFile(filepath.Join(home, ".claude", "settings.json"))
	if err != nil || !strings.Contains(string(settings), " hook claude-code --user nora") {
		t.Fatalf("%s %v", settings, err)
	}
	hook := func(event string) string {
		t.Helper()
		return command(`{`+event+`,"cwd":"/x"}`, "hook", "claude-code", "--user", "nora")
	}
	if out := hook(`"hook_event_name":"UserPromptSubmit","session_id":"one","prompt":"I live in Oslo."`); out != "" {
		t.Errorf("the first prompt: %s", out)
	}
	hook(`"hook_event_name":"Stop","session_id":"one","last_assistant_message":"Noted."`)
	i.settled(of(scope.Scope{Project: scope.DefaultProject, User: "nora"}), 2)
	for _, event := range []string{
		`"hook_event_name":"SessionStart","session_id":"two","source":"startup"`,
		`"hook_event_name":"UserPromptSubmit","session_id":"two","prompt":"Where do I live?"`,
	} {
		if out := hook(event); !strings.Contains(out, `"additionalContext":`) || !strings.Contains(out, "Oslo") {
			t.Errorf("%s: %s", event, out)
		}
	}
	command("", "install", "claude-code", "--user", "nora", "--yes", "--undo")
	if _, err := os.Stat(filepath.Join(home, ".claude", "settings.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after undo: %v", err)
	}
}

// TestMCPStartsPalimpsest: of two assistants that find none, one starts it in the
// background, both use it, and it goes on without them.
func TestMCPStartsPalimpsest(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	data, addr := t.TempDir(), l.Addr().String()
	_ = l.Close()
	t.Cleanup(func() { stopDetached(t, data) })
	assistant := func(user string) model {
		run := exec.Command(program, "mcp", "--user", user)
		run.Env = append(os.Environ(), "PALIMPSEST_DATA="+data, "PALIMPSEST_HTTP_LISTEN="+addr, "PALIMPSEST_NATS_LISTEN=127.0.0.1:0")
		return modelOf(t, &sdk.CommandTransport{Command: run})
	}
	one := assistant("nora")
	two := assistant("bob")
	one.must("remember_fact", object{"text": "Nora lives in Oslo."}, nil)
	two.must("remember_fact", object{"text": "Bob lives in Lima."}, nil)
	for _, m := range []model{one, two} {
		if err := m.session.Close(); err != nil {
			t.Error(err)
		}
	}
	api, err := client.New("http://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Ready(t.Context()); err != nil {
		t.Errorf("without the assistants: %v", err)
	}
}

// TestAssistantOutlivesAKilledStart: an assistant that is killed while it starts the program
// leaves one that the next assistant uses.
func TestAssistantOutlivesAKilledStart(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	environ := append(os.Environ(), "PALIMPSEST_DATA="+data, "PALIMPSEST_HTTP_LISTEN="+freeAddresses(t, 1)[0], "PALIMPSEST_NATS_LISTEN=127.0.0.1:0")
	killed := exec.Command(program, "mcp", "--user", "nora")
	killed.Env = environ
	if _, err := killed.StdinPipe(); err != nil { // at the end of its input it would end by itself
		t.Fatal(err)
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopDetached(t, data) })
	eventually(t, "the start", func() error { _, err := os.Stat(filepath.Join(data, "up.pid")); return err })
	if err := errors.Join(killed.Process.Kill(), killed.Wait()); err == nil {
		t.Error("the assistant has ended by itself")
	}
	run := exec.Command(program, "mcp", "--user", "nora")
	run.Env = environ
	next := modelOf(t, &sdk.CommandTransport{Command: run})
	next.must("remember_fact", object{"text": "Nora lives in Oslo."}, nil)
	if err := next.session.Close(); err != nil {
		t.Error(err)
	}
}

// stopDetached ends a process that was started in the background, and waits until it
// has released its data.
func stopDetached(t *testing.T, data string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "up.pid"))
	if err != nil {
		t.Error(err)
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Error(err)
		return
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	eventually(t, "the end of the process", func() error {
		if err := syscall.Kill(pid, 0); err == nil {
			return errors.New("it runs")
		}
		return nil
	})
}
