package mcp

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

type object = map[string]any

func TestToolsAreDescribed(t *testing.T) {
	t.Parallel()
	list, err := connect(t, &fakeMemory{}, api.Scope{}).ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][3]bool{}
	for _, tool := range list.Tools {
		a := tool.Annotations
		if tool.Description == "" || tool.OutputSchema == nil || a.Title == "" || a.OpenWorldHint == nil || *a.OpenWorldHint || a.DestructiveHint == nil {
			t.Errorf("%s: %+v", tool.Name, tool)
			continue
		}
		got[tool.Name] = [3]bool{a.ReadOnlyHint, *a.DestructiveHint, a.IdempotentHint}
	}
	want := map[string][3]bool{ // reads only, destroys, idempotent
		"search_memory": {true, false, true}, "explain_fact": {true, false, true}, "memory_stats": {true, false, true}, "get_context": {true, false, true}, "weak_facts": {true, false, true}, "get_entity_info": {true, false, true},
		"remember_fact": {false, false, true}, "correct_fact": {false, true, false}, "confirm_fact": {false, false, true}, "forget": {false, true, true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestToolsAskTheAPI checks the API calls and the answer of each tool.
func TestToolsAskTheAPI(t *testing.T) {
	t.Parallel()
	memory := &fakeMemory{}
	c := connect(t, memory, api.Scope{User: "nora", Agent: "claude", Session: "s1"})
	nora := "nora"
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		tool   string
		args   object
		asked  []any
		answer string
	}{
		{
			"search_memory",
			object{"query": "where?", "types": []string{"fact"}, "kinds": []string{"semantic"}, "limit": 3, "after": "2026-03-01", "before": "2026-03-01T00:00:00Z", "valid_at": "2026-03-01"},
			[]any{api.Search{
				Selector: api.Selector{User: &nora}, Text: "where?", Types: []string{"fact"}, Kinds: []string{"semantic"}, Limit: 3,
				After: "2026-03-01", Before: "2026-03-01T00:00:00Z", ValidAt: &api.Instant{Time: day},
			}},
			`{"degraded":["vector"],"results":[{"fact":{"confidence":0.988,"id":"f","kind":"semantic","revision":3,"since":"2026-04-02T12:00:00Z","text":"Nora lives in Oslo.","user":"nora"},"score":0.9},` +
				`{"episode":{"at":"2026-04-02T12:00:00Z","content":"I live in Oslo.","id":"e","role":"user","session":"s","user":"nora"},"score":0.5}]}`,
		},
		{
			"get_context", object{"query": "where?", "budget": 200},
			[]any{api.ContextQuery{Selector: api.Selector{User: &nora}, Text: "where?", Budget: 200}},
			`{"context":"- Nora lives in Oslo. [f]","degraded":["vector"]}`,
		},
		{
			"remember_fact",
			object{"text": "Nora lives in Oslo.", "kind": "semantic", "category": "biography", "subject": "nora", "predicate": "lives_in", "object": "Oslo", "event_time": "2026-03-01", "valid_until": "2026-03-01"},
			[]any{api.Remember{
				Scope: api.Scope{User: "nora", Agent: "claude", Session: "s1"}, Text: "Nora lives in Oslo.", Kind: "semantic", Category: "biography",
				Subject: "nora", Predicate: "lives_in", Object: "Oslo", EventTime: &day, ValidUntil: &day,
			}, ""},
			`"event":"UPDATE"`,
		},
		{"correct_fact", object{"id": "a/b 🦊", "text": "x", "revision": 3, "category": "c", "object": "o"}, []any{"correct", "a/b 🦊", uint64(3), api.Correct{Text: "x", Category: "c", Object: "o"}}, `"status":"done"`},
		{"confirm_fact", object{"id": "f"}, []any{"confirm", "f", uint64(0)}, `"text":"Nora lives in Oslo."`},
		{"forget", object{"id": "f", "revision": 2}, []any{"delete", "f", uint64(2)}, `"reason":"corrected"`},
		{"explain_fact", object{"id": "f"}, []any{"explain", "f"}, `"decisions":[{"at":"2026-04-02T12:00:00Z","decided_by":"rules","event":"ADD","reason":"new","rule":"turn"}],"entities":["Oslo"],"episodes":[]`},
		{"weak_facts", object{"limit": 7}, []any{"weak", scope.Selector{User: &nora}, 7, ""}, `"pruned_at":"2026-04-02T13:00:00Z"`},
		{"memory_stats", object{}, []any{"stats", scope.Selector{User: &nora}, scope.Selector{User: &nora}, false}, `"balanced":true`},
		{"get_entity_info", object{"name": "fenwick"}, []any{"entity", scope.Selector{User: &nora}, "fenwick"}, `"relations":[{"predicate":"work","since":"0001-01-01T00:00:00Z","source":"user","target":"Fenwick"}]`},
	} {
		text, failed := call(t, c, tc.tool, tc.args)
		if failed || !strings.Contains(text, tc.answer) {
			t.Errorf("%s answers %s", tc.tool, text)
		}
		if diff := cmp.Diff(tc.asked, memory.last()); diff != "" {
			t.Errorf("%s asks:\n%s", tc.tool, diff)
		}
	}
}

// TestScopes: a read is as wide as it may be, a write as narrow.
func TestScopes(t *testing.T) {
	t.Parallel()
	all := api.Scope{User: "nora", Agent: "claude", Session: "s1"}
	for _, tc := range []struct {
		name         string
		whose        api.Scope
		args         Whose
		reads, write api.Scope // an empty level of a read is left out
	}{
		{"the defaults", all, Whose{}, api.Scope{User: "nora"}, all},
		{"another user", all, Whose{User: "bob"}, api.Scope{User: "bob"}, api.Scope{User: "bob", Agent: "claude", Session: "s1"}},
		{"another agent", all, Whose{Agent: "codex"}, api.Scope{User: "nora", Agent: "codex"}, api.Scope{User: "nora", Agent: "codex", Session: "s1"}},
		{"an agent alone", api.Scope{Agent: "claude", Session: "s1"}, Whose{}, api.Scope{Agent: "claude"}, api.Scope{Agent: "claude", Session: "s1"}},
		{"a session alone", api.Scope{Session: "s1"}, Whose{}, api.Scope{Session: "s1"}, api.Scope{Session: "s1"}},
		{"no default", api.Scope{}, Whose{User: "ada/l 🦊"}, api.Scope{User: "ada/l 🦊"}, api.Scope{User: "ada/l 🦊"}},
		{"nobody", api.Scope{}, Whose{}, api.Scope{}, api.Scope{}},
	} {
		s := &server{config: Config{Default: tc.whose}}
		sel, readErr := s.reads(tc.args)
		owner, writeErr := s.writes(tc.args)
		if nobody := tc.write == (api.Scope{}); errors.Is(readErr, errNobody) != nobody || errors.Is(writeErr, errNobody) != nobody {
			t.Errorf("%s: %v, %v", tc.name, readErr, writeErr)
		}
		want := api.Selector{User: named(tc.reads.User), Agent: named(tc.reads.Agent), Session: named(tc.reads.Session)}
		if diff := cmp.Diff(want, sel); diff != "" {
			t.Errorf("%s: reads:\n%s", tc.name, diff)
		}
		if owner != tc.write {
			t.Errorf("%s: writes %+v", tc.name, owner)
		}
	}
}

func TestBadCalls(t *testing.T) {
	t.Parallel()
	memory := &fakeMemory{}
	c := connect(t, memory, api.Scope{User: "nora"})
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "drop_tables"}); err == nil || !strings.Contains(err.Error(), "drop_tables") {
		t.Errorf("unknown tool: %v", err)
	}
	for _, tc := range []struct {
		tool string
		args any
		want string
	}{
		{"search_memory", nil, "query"},
		{"search_memory", object{"query": "x", "usr": "bob"}, "usr"},
		{"search_memory", object{"query": 7}, "query"},
		{"search_memory", object{"query": "x", "valid_at": "soon"}, `valid_at: "soon" is neither RFC 3339 nor YYYY-MM-DD`},
		{"remember_fact", object{"user": "nora"}, "text"},
		{"remember_fact", object{"text": "x", "valid_until": "31.12."}, "valid_until"},
		{"correct_fact", object{"id": "f"}, "text"},
		{"correct_fact", object{"id": "", "text": "x"}, "id is empty"},
		{"confirm_fact", object{"id": "f", "revision": -1}, "revision"},
		{"forget", object{"id": ""}, "id is empty"},
		{"explain_fact", object{"id": ""}, "id is empty"},
		{"memory_stats", object{"session": "s"}, "session"},
	} {
		if text, failed := call(t, c, tc.tool, tc.args); !failed || !strings.Contains(text, tc.want) {
			t.Errorf("%s %v: %s", tc.tool, tc.args, text)
		}
	}
	if asked := memory.last(); len(asked) > 0 {
		t.Errorf("the API was asked %v", asked)
	}
	c = connect(t, memory, api.Scope{})
	for tool, args := range map[string]object{"search_memory": {"query": "x"}, "remember_fact": {"text": "x"}, "memory_stats": {}} {
		if text, failed := call(t, c, tool, args); !failed || !strings.Contains(text, "no user is named") {
			t.Errorf("%s of nobody: %s", tool, text)
		}
	}
}

// TestAPanicIsAnswered: it ends neither the process nor the connection.
func TestAPanicIsAnswered(t *testing.T) {
	t.Parallel()
	memory := &fakeMemory{panics: true}
	c := connect(t, memory, api.Scope{User: "nora"})
	_, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "search_memory", Arguments: object{"query": "x"}})
	if err == nil || !strings.Contains(err.Error(), "could not be answered") || strings.Contains(err.Error(), "a fault of ours") {
		t.Errorf("error %v", err)
	}
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	memory := &fakeMemory{}
	c := connect(t, memory, api.Scope{User: "nora"})
	get := func(name string, args map[string]string) (string, error) {
		res, err := c.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: args})
		if err != nil {
			return "", err
		}
		return res.Messages[0].Content.(*sdk.TextContent).Text, nil
	}
	text, err := get("recall", map[string]string{"topic": "home", "user": "bob"})
	if err != nil || !strings.Contains(text, `- "Nora lives in Oslo." (id f)`) {
		t.Errorf("%q, %v", text, err)
	}
	if q := memory.last()[0].(api.Search); *q.User != "bob" || q.Text != "home" || !slices.Equal(q.Types, []string{"fact"}) {
		t.Errorf("asks %+v", q)
	}
	if text, err = get("save", nil); err != nil || !strings.Contains(text, "remember_fact") {
		t.Errorf("%q, %v", text, err)
	}
	memory.err = api.NewProblem(503, api.CodeStoreUnavailable, "", "a dependency does not answer")
	if _, err = get("recall", map[string]string{"topic": "home"}); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("error %v", err)
	}
}
