package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"palimpsest/pkg/scope"
)

// hookOf describes the documented hooks of an assistant: the file, the events by their
// purpose with the members of their input, and where the answer has additional context.
type hookOf struct {
	file    string
	session string // the member that names the session
	// opening, prompt, reply and the rest are events with a part of their input.
	opening, prompt, reply string
	rest                   []string
	// context reads the additional context out of an answer to an event.
	context func(t *testing.T, event string, answer []byte) string
	// silent is the answer to a prompt without context.
	silent string
}

// nestedContext is the format of Claude Code, Codex and Gemini CLI.
func nestedContext(t *testing.T, event string, answer []byte) string {
	t.Helper()
	var out struct {
		Own struct {
			Event   string `json:"hookEventName"`
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	strictly(t, answer, &out)
	if out.Own.Event != event {
		t.Errorf("the answer to %s is %s", event, answer)
	}
	return out.Own.Context
}

func strictly(t *testing.T, answer []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(answer))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil || d.More() {
		t.Errorf("the answer is %q: %v", answer, err)
	}
}

var hooksOf = map[string]hookOf{
	"claude-code": {
		file: ".claude/settings.json", session: "session_id", opening: `SessionStart,"source":"startup"`,
		prompt: `UserPromptSubmit,"permission_mode":"default","prompt":%q`, reply: `Stop,"stop_hook_active":false,"last_assistant_message":"Noted."`,
		rest: []string{`PreCompact,"trigger":"auto","custom_instructions":""`, `SessionEnd,"reason":"exit"`}, context: nestedContext,
	},
	"codex": {
		file: ".codex/hooks.json", session: "session_id", opening: `SessionStart,"source":"startup"`,
		prompt: `UserPromptSubmit,"turn_id":"1","prompt":%q`, reply: `Stop,"turn_id":"1","stop_hook_active":false,"last_assistant_message":"Noted."`,
		rest: []string{`PreCompact,"trigger":"auto"`}, context: nestedContext,
	},
	"gemini": {
		file: ".gemini/settings.json", session: "session_id", opening: `SessionStart,"source":"startup"`,
		prompt: `BeforeAgent,"prompt":%q`, reply: `AfterAgent,"prompt":"?","prompt_response":"Noted.","stop_hook_active":false`,
		rest: []string{`PreCompress,"trigger":"auto"`, `SessionEnd,"reason":"exit"`}, context: nestedContext,
	},
	"cursor": {
		file: ".cursor/hooks.json", session: "conversation_id", opening: `sessionStart,"is_background_agent":false`,
		prompt: `beforeSubmitPrompt,"prompt":%q,"attachments":[]`, reply: `afterAgentResponse,"text":"Noted."`,
		rest: []string{`preCompact,"trigger":"auto"`, `sessionEnd,"reason":"completed"`}, silent: `{"continue":true}`,
		context: func(t *testing.T, event string, answer []byte) string {
			t.Helper()
			var out struct {
				Context  string `json:"additional_context"`
				Continue *bool  `json:"continue"`
			}
			strictly(t, answer, &out)
			return out.Context
		},
	},
}

// TestInstalledHooks runs each command that install writes, as its assistant does: by a
// shell, from another directory, with the event on standard input. The facts of one
// session return in the next one as additional context; every hook exits with 0, also
// when no Palimpsest runs.
func TestInstalledHooks(t *testing.T) {
	t.Parallel()
	for name, of := range hooksOf {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t, t.TempDir())
			h := installHooks(t, i.HTTP, name, of)
			if out := h.call("one", fmt.Sprintf(of.prompt, "I live in Oslo.")); out != of.silent {
				t.Errorf("the first prompt is answered with %q", out)
			}
			if out := h.call("one", of.reply); out != "" {
				t.Errorf("a reply is answered with %q", out)
			}
			i.settled(ofUser(h.user), 2)
			for _, event := range of.rest {
				if out := h.call("one", event); out != "" {
					t.Errorf("%s is answered with %q", event, out)
				}
			}
			asked := []string{of.opening}
			if of.silent == "" {
				asked = append(asked, fmt.Sprintf(of.prompt, "Where do I live?"))
			}
			for _, event := range asked {
				kind, _, _ := strings.Cut(event, ",")
				if known := of.context(t, kind, []byte(h.call("two", event))); !strings.Contains(known, "Oslo") {
					t.Errorf("%s: the context is %q", kind, known)
				}
			}
			i.kill()
			for _, event := range append([]string{of.opening, of.reply}, of.rest...) {
				if out := h.call("three", event); out != "" {
					t.Errorf("without Palimpsest %s is answered with %q", event, out)
				}
			}
		})
	}
}

// ofUser selects what belongs to a user of the default project.
func ofUser(user string) scope.Selector {
	return of(scope.Scope{Project: scope.DefaultProject, User: user})
}

// installedHooks are the commands of one assistant, by event.
type installedHooks struct {
	t        *testing.T
	of       hookOf
	user     string
	home     string
	commands map[string]string
}

func installHooks(t *testing.T, server, name string, of hookOf) installedHooks {
	t.Helper()
	h := installedHooks{t: t, of: of, user: "nora o'neil", home: t.TempDir(), commands: map[string]string{}}
	install := exec.CommandContext(t.Context(), program, "--server", server, "install", name, "--user", h.user, "--yes")
	install.Env = h.environ()
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(h.home, of.file))
	if err != nil {
		t.Fatal(err)
	}
	type command struct {
		Command string
		Hooks   []struct{ Type, Command string }
	}
	var written struct{ Hooks map[string][]command }
	if err := json.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	for event, list := range written.Hooks {
		c := list[0]
		if len(c.Hooks) == 1 && c.Hooks[0].Type == "command" {
			c.Command = c.Hooks[0].Command
		}
		h.commands[event] = c.Command
	}
	var want []string
	for _, event := range append([]string{of.opening, of.prompt, of.reply}, of.rest...) {
		kind, _, _ := strings.Cut(event, ",")
		want = append(want, kind)
	}
	slices.Sort(want)
	if have := slices.Sorted(maps.Keys(h.commands)); !slices.Equal(have, want) {
		t.Fatalf("hooks of %q, want %q", have, want)
	}
	return h
}

func (h installedHooks) environ() []string {
	return append(os.Environ(), "HOME="+h.home, "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "PALIMPSEST_DATA="+filepath.Join(h.home, "data"))
}

// call runs the command of an event and returns its output. The event is a name and
// members of its input.
func (h installedHooks) call(session, event string) string {
	h.t.Helper()
	name, members, _ := strings.Cut(event, ",")
	run := exec.CommandContext(h.t.Context(), "sh", "-c", h.commands[name])
	run.Dir, run.Env = h.home, h.environ()
	run.Stdin = strings.NewReader(fmt.Sprintf(`{%q:%q,"transcript_path":"/none","cwd":"/x","hook_event_name":%q,%s}`, h.of.session, session, name, members))
	var errs bytes.Buffer
	run.Stderr = &errs
	out, err := run.Output()
	if err != nil {
		h.t.Errorf("%s: %v: %s", name, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}
