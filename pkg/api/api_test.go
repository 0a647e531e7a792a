package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

func TestInstant(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		`"2026-01-02"`:                    time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		`"2026-01-02T03:04:05Z"`:          time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		`"2026-01-02T03:04:05.678+01:00"`: time.Date(2026, 1, 2, 2, 4, 5, 678e6, time.UTC),
		`null`:                            {},
	} {
		var i api.Instant
		if err := json.Unmarshal([]byte(text), &i); err != nil || !i.Equal(want) {
			t.Errorf("%s: %v, %v", text, i, err)
		}
	}
	for _, text := range []string{`"yesterday"`, `7`, `""`, `"2026-13-01"`, `{}`} {
		var i api.Instant
		if err := json.Unmarshal([]byte(text), &i); err == nil {
			t.Errorf("%s is read as %v", text, i)
		}
	}
	// The output is read again.
	at := api.Instant{Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))}
	raw, err := json.Marshal(at)
	var back api.Instant
	if err != nil || json.Unmarshal(raw, &back) != nil || !back.Equal(at.Time) {
		t.Errorf("%s, %v, %v", raw, back, err)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]api.Messages{
		`"hello"`:                           {{Content: "hello"}},
		`{"content":"a","role":"tool"}`:     {{Content: "a", Role: "tool"}},
		`[{"content":"a"},{"content":"b"}]`: {{Content: "a"}, {Content: "b"}},
	} {
		var m api.Messages
		if err := json.Unmarshal([]byte(text), &m); err != nil || !cmp.Equal(m, want) {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
	for _, text := range []string{`7`, `[7]`, `{"content":7}`} {
		var m api.Messages
		if err := json.Unmarshal([]byte(text), &m); err == nil {
			t.Errorf("%s is read as %+v", text, m)
		}
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	s := scope.Scope{Project: "p", User: "u", Agent: "a", Session: "s"}
	if got := api.ScopeOf(s).In("p"); got != s {
		t.Errorf("%+v", got)
	}
	user := "u"
	sel := api.Selector{User: &user}.In("p")
	if !sel.Match(s) || sel.Match(scope.Scope{Project: "p", User: "v"}) || sel.Match(scope.Scope{Project: "q", User: "u"}) {
		t.Errorf("%v", sel)
	}
}

func TestProblem(t *testing.T) {
	t.Parallel()
	p := api.NewProblem(404, api.CodeNotFound, "", "no %s", "such id")
	want := &api.Problem{Type: "urn:palimpsest:problem:not_found", Title: "Not Found", Status: 404, Code: "not_found", Detail: "no such id"}
	if diff := cmp.Diff(want, p); diff != "" || p.Error() != "not_found: no such id" || p.ContentType("") != "application/problem+json" {
		t.Errorf("%v\n%s", p, diff)
	}
}
