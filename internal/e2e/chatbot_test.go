package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/llm/llmtest"
	"palimpsest/pkg/scope"
)

// parrot is a model that repeats the context about the user.
func parrot(asked llmtest.Asked) llmtest.Answer {
	switch {
	case !strings.Contains(asked.User, "Where do I live?"):
		return llmtest.Answer{Text: "Noted."}
	case strings.Contains(asked.System, "Oslo"):
		return llmtest.Answer{Text: "You live in Oslo."}
	}
	return llmtest.Answer{Text: "I do not know."}
}

// TestChatbots: in a second conversation, the chats of the examples know what was
// said in the first.
func TestChatbots(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	model := llmtest.Serve(t, llmtest.OpenAI, parrot)
	chatbot := filepath.Join(t.TempDir(), "chatbot")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", chatbot, "palimpsest/examples/chatbot").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	python, err := filepath.Abs(filepath.Join(root, ".cache", "mem0", "python", "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string]func(session string) []string{
		"go": func(session string) []string {
			return []string{chatbot, "-server", i.HTTP, "-nats", i.NATS, "-llm", model.URL, "-user", "go", "-session", session}
		},
		"python": func(string) []string {
			return []string{python, filepath.Join(root, "examples", "chatbot", "chatbot.py"), "python", model.URL, "m"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			words := command("one")
			if _, err := os.Stat(words[0]); err != nil {
				t.Skip("mem0's client is not installed: make mem0")
			}
			say := func(session, text string) string {
				t.Helper()
				ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
				defer stop()
				words := command(session)
				run := exec.CommandContext(ctx, words[0], words[1:]...)
				run.Stdin = strings.NewReader(text + "\n")
				run.Env = append(os.Environ(), "MEM0_TELEMETRY=false", "MEM0_BASE_URL="+i.HTTP, "HOME="+t.TempDir())
				var errs bytes.Buffer
				run.Stderr = &errs
				out, err := run.Output()
				if err != nil {
					t.Fatalf("%v: %s", err, errs.String())
				}
				return strings.TrimSpace(string(out))
			}
			if got := say("one", "I live in Oslo."); got != "Noted." {
				t.Errorf("first conversation: %s", got)
			}
			i.in(t).settled(of(scope.Scope{Project: scope.DefaultProject, User: name}), 2)
			eventually(t, "the answer of the second conversation", func() error {
				if got := say("two", "Where do I live?"); got != "You live in Oslo." {
					return errors.New(got)
				}
				return nil
			})
		})
	}
}
