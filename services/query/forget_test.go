package query

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// owned puts facts and a held candidate of several fact scopes into the store.
func owned(r *rig) {
	for i, owner := range []scope.Scope{
		{User: "nora"}, {User: "nora", Agent: "a1"}, {User: "nora", Agent: "a2"}, {User: "ben", Agent: "a1"},
		{Agent: "a1"}, {Agent: "a1", Session: "s1"}, {Session: "s1"},
	} {
		owner.Project = "default"
		f := fact1(string(rune('a'+i)), 1, "x")
		f.Scope, f.SessionIDs = owner, []string{"s1", "s2"}
		if owner.Agent == "a2" {
			f.SessionIDs = []string{"s2"}
		}
		r.store.facts = append(r.store.facts, f)
	}
	rival := fact1("r", 1, "x")
	rival.Scope = scope.Scope{Project: "rival", User: "nora"}
	r.store.facts = append(r.store.facts, rival)
	r.store.holds = []store.Hold{{
		Scope: scope.Scope{Project: "default", User: "eve"},
		Hold:  events.Hold{ID: "h", Candidate: events.Candidate{SessionIDs: []string{"s1"}}},
	}}
}

// deletes returns the scopes that were told to close their facts.
func (r *rig) deletes(t *testing.T, session string) []string {
	t.Helper()
	var out []string
	for _, s := range r.publisher.sent() {
		c, ok := s.p.(events.CommandRequested)
		if !ok || c.Op != events.OpDeleteScope || c.Session != session || c.RequestID != s.meta.CorrelationID {
			t.Errorf("%+v", s)
			continue
		}
		out = append(out, c.Scope.Key())
	}
	slices.Sort(out)
	return out
}

func TestDeleteScopeWidens(t *testing.T) {
	t.Parallel()
	for query, want := range map[string][]string{
		"user=nora":               {"/user/nora/", "/user/nora/agent/a1/", "/user/nora/agent/a2/"},
		"user=nora&agent=a1":      {"/user/nora/agent/a1/"},
		"user=nora&agent=":        {"/user/nora/"},
		"agent=a1":                {"/agent/a1/", "/session/s1/agent/a1/", "/user/ben/agent/a1/", "/user/nora/agent/a1/"},
		"user=&agent=a1":          {"/agent/a1/", "/session/s1/agent/a1/"},
		"user=&agent=a1&session=": {"/agent/a1/"},
		"session=s1":              {"/session/s1/", "/session/s1/agent/a1/", "/user/ben/agent/a1/", "/user/eve/", "/user/nora/", "/user/nora/agent/a1/"},
		"session=s1&user=nora":    {"/user/nora/", "/user/nora/agent/a1/"},
		"session=s1&agent=a1":     {"/session/s1/agent/a1/", "/user/ben/agent/a1/", "/user/nora/agent/a1/"},
		"session=s1&user=":        {"/session/s1/", "/session/s1/agent/a1/"},
		"session=s2&user=nora":    {"/user/nora/", "/user/nora/agent/a1/", "/user/nora/agent/a2/"},
		"user=nobody":             nil,
		"user=nora&project=rival": {"/user/nora/"},
	} {
		r := newRig(t)
		owned(r)
		r.obey(func(events.CommandRequested) events.Outcome {
			return events.Outcome{Closed: 2, Results: []events.Result{}}
		})
		out := into[api.Written](t, r.do(http.MethodDelete, "/v1/scopes?"+query, ""), http.StatusOK)
		session := ""
		if values, err := url.ParseQuery(query); err == nil {
			session = values.Get("session")
		}
		if diff := cmp.Diff(want, r.deletes(t, session)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
		if out.Status != "done" || out.Closed == nil || *out.Closed != 2*len(want) || out.CorrelationID == "" || (out.At == "") != (want == nil) {
			t.Errorf("%s: %+v", query, out)
		}
		if n := r.listener.listening(); n != 0 {
			t.Errorf("%s: %d listeners are left", query, n)
		}
	}
}

// TestP1NothingIsGoneThatWasLost: a store that lost rows misses owners and messages, which
// are put back later. A delete must not report them as gone, nor an undo leave them out.
func TestP1NothingIsGoneThatWasLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, path, body string }{
		{http.MethodDelete, "/v1/scopes?user=nora", ""},
		{http.MethodDelete, "/v1/scopes?session=s1", ""},
		{http.MethodPost, "/v1/reset", ""},
		{http.MethodPost, "/v1/undo", `{"session":"s1"}`},
		{http.MethodPost, "/v1/quarantine", `{"session":"s1"}`},
	} {
		asked := &fakeErasures{}
		r := newRig(t, func(cfg *Config, d *Deps) { cfg.AllowReset, d.Erasures = true, asked })
		r.store.lost = store.ErrLost
		if a := r.do(c.method, c.path, c.body); a.status < http.StatusInternalServerError {
			t.Errorf("%s %s: %d %s, want an error of the server", c.method, c.path, a.status, a.body)
		}
		if len(asked.asked) > 0 || len(r.deletes(t, "")) > 0 {
			t.Errorf("%s %s: asked for %v and published commands", c.method, c.path, asked.asked)
		}
	}
}

func TestDeleteScopeRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	owned(r)
	for query, want := range map[string]api.Problem{
		"":                    {Code: api.CodeScopeMissing, Field: "user"},
		"user=":               {Code: api.CodeScopeMissing, Field: "user"},
		"user=&agent=":        {Code: api.CodeScopeMissing, Field: "user"},
		"session=&user=nora":  {Code: api.CodeInvalidField, Field: "session"},
		"session=&agent=a1":   {Code: api.CodeInvalidField, Field: "session"},
		"user=nora&all=true":  {Code: api.CodeInvalidField, Field: "all"},
		"user=nora&user=ben":  {Code: api.CodeInvalidField, Field: "user"},
		"user=nora&erase=yes": {Code: api.CodeInvalidField, Field: "erase"},
	} {
		if p := r.do(http.MethodDelete, "/v1/scopes?"+query, "").problem(t); p.Status != 400 || p.Code != want.Code || p.Field != want.Field {
			t.Errorf("%s: %+v", query, p)
		}
	}
	if n := len(r.publisher.sent()); n > 0 {
		t.Errorf("%d commands", n)
	}
}

// A delete whose commands take too long is published whole; asked again by its
// key, it has the count of all.
func TestDeleteScopeGivesUpWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config, _ *Deps) { c.Wait = 20 * time.Millisecond })
	owned(r)
	out, err := r.client.DeleteScope(t.Context(), scope.Selector{User: ptr("nora")}, "k")
	if err != nil || out.Status != "accepted" || out.Closed != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	sent := r.publisher.sent()
	if len(sent) != 3 {
		t.Fatalf("%d commands", len(sent))
	}
	for _, s := range sent {
		r.store.settle("default", events.Outcome{CorrelationID: s.meta.CorrelationID, Rule: memory.RuleCommand, Closed: 1})
	}
	again, err := r.client.DeleteScope(t.Context(), scope.Selector{User: ptr("nora")}, "k")
	if err != nil || again.Status != "done" || *again.Closed != 3 || again.CorrelationID != out.CorrelationID || len(r.publisher.sent()) != 3 {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestDeleteScopeFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	owned(r)
	r.publisher.hook = func(_ context.Context, _ events.Meta, p events.Payload) error {
		if c, ok := p.(events.CommandRequested); ok && c.Scope.Agent == "a1" {
			return errDown
		}
		return nil
	}
	r.service.config.Wait = 20 * time.Millisecond
	if p := r.do(http.MethodDelete, "/v1/scopes?user=nora", "").problem(t); p.Status != 503 || p.Code != api.CodeStreamUnavailable {
		t.Errorf("%+v", p)
	}
	if n := len(r.publisher.sent()); n != 2 {
		t.Errorf("%d other commands were published, want 2", n)
	}
}
