package assistant

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
)

// fake keeps what hooks ask of the memory.
type fake struct {
	asked []string
	err   error
}

func (f *fake) Record(_ context.Context, r api.Record, _ string) (api.Written, error) {
	f.asked = append(f.asked, fmt.Sprintf("record %s/%s/%s %s: %s", r.User, r.Agent, r.Session, r.Messages[0].Role, r.Messages[0].Content))
	return api.Written{}, f.err
}

func (f *fake) Assemble(_ context.Context, q api.ContextQuery) (api.Context, error) {
	f.asked = append(f.asked, fmt.Sprintf("context of %s, first %v", *q.User, q.FirstTurn))
	if f.err != nil {
		return api.Context{}, f.err
	}
	return api.Context{Context: "- Nora lives in Oslo."}, nil
}

func (f *fake) EndSession(_ context.Context, s api.Scope, _ string) (api.Written, error) {
	f.asked = append(f.asked, "end "+s.Session)
	return api.Written{}, f.err
}

// contextOf is the answer that adds context in the format of most assistants.
func contextOf(event string) string {
	return `{"hookSpecificOutput":{"additionalContext":` + raw(heading+"- Nora lives in Oslo.") + `,"hookEventName":"` + event + `"}}`
}

func TestHooks(t *testing.T) {
	t.Parallel()
	const prompt, end = "record nora/%s/s user: Where do I live?", "end s"
	for _, tc := range []struct {
		assistant, event, answer string
		asked                    []string
	}{
		{"claude-code", `"SessionStart","session_id":"s"`, contextOf("SessionStart"), []string{"context of nora, first true"}},
		{"codex", `"UserPromptSubmit","session_id":"s","prompt":"Where do I live?"`, contextOf("UserPromptSubmit"), []string{"context of nora, first false", prompt}},
		{"gemini", `"BeforeAgent","session_id":"s","prompt":"Where do I live?"`, contextOf("BeforeAgent"), []string{"context of nora, first false", prompt}},
		{"cursor", `"sessionStart","conversation_id":"s"`, `{"additional_context":` + raw(heading+"- Nora lives in Oslo.") + `}`, []string{"context of nora, first true"}},
		{"cursor", `"beforeSubmitPrompt","conversation_id":"s","prompt":"Where do I live?"`, `{"continue":true}`, []string{prompt}},
		{"claude-code", `"Stop","session_id":"s","last_assistant_message":"In Oslo."`, "", []string{"record nora/%s/s assistant: In Oslo."}},
		{"gemini", `"AfterAgent","session_id":"s","prompt":"?","prompt_response":"In Oslo."`, "", []string{"record nora/%s/s assistant: In Oslo."}},
		{"cursor", `"afterAgentResponse","conversation_id":"s","text":"In Oslo."`, "", []string{"record nora/%s/s assistant: In Oslo."}},
		{"codex", `"Stop","session_id":"s","last_assistant_message":null`, "", nil},
		{"claude-code", `"PreCompact","session_id":"s"`, "", []string{end}},
		{"cursor", `"preCompact","conversation_id":"s"`, "", []string{end}},
		{"gemini", `"SessionEnd","session_id":"s"`, "", []string{end}},
	} {
		var out strings.Builder
		memory := &fake{}
		if err := Answer(t.Context(), memory, tc.assistant, "nora", strings.NewReader(`{"hook_event_name":`+tc.event+`}`), &out); err != nil {
			t.Errorf("%s %s: %v", tc.assistant, tc.event, err)
		}
		var want []string
		for _, a := range tc.asked {
			want = append(want, strings.ReplaceAll(a, "%s", tc.assistant))
		}
		if diff := cmp.Diff(want, memory.asked); diff != "" || strings.TrimSpace(out.String()) != tc.answer {
			t.Errorf("%s %s: answer %s\n%s", tc.assistant, tc.event, out.String(), diff)
		}
	}
}

// TestAHookSurvivesAnOutage: the prompt goes on without memory, and the error says
// why.
func TestAHookSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	away := errors.New("connection refused")
	for _, tc := range []struct{ assistant, event, answer string }{
		{"claude-code", "UserPromptSubmit", ""}, {"cursor", "beforeSubmitPrompt", `{"continue":true}`},
	} {
		var out strings.Builder
		err := Answer(t.Context(), &fake{err: away}, tc.assistant, "nora", strings.NewReader(`{"hook_event_name":"`+tc.event+`","prompt":"x"}`), &out)
		if !errors.Is(err, away) {
			t.Errorf("%s: %v", tc.assistant, err)
		}
		if got := strings.TrimSpace(out.String()); got != tc.answer {
			t.Errorf("%s: %s", tc.assistant, got)
		}
	}
	for _, in := range []string{"", "{", `{"hook_event_name":"Coffee"}`} {
		if err := Answer(t.Context(), &fake{}, "codex", "nora", strings.NewReader(in), &strings.Builder{}); err == nil {
			t.Errorf("%q is no error", in)
		}
	}
}
