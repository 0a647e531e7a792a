package query

import (
	"net/http"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestKnownIDWithOtherContentIsRefused(t *testing.T) {
	t.Parallel()
	owner := scope.Scope{Project: "default", User: "nora"}
	e := said1("m1", owner, noon, 1)
	e.Content, e.Mode = "I live in Oslo.", events.ModePersistent
	other := said1("m2", scope.Scope{Project: "default", User: "nora", Session: "s1"}, noon, 2)
	foreign := said1("m3", owner, noon, 3)
	foreign.Source = "sensor"
	for name, tc := range map[string]struct {
		body  string
		field string // empty: accepted
	}{
		"the same again":    {`{"user":"nora","messages":[{"id":"m1","content":"I live in Oslo."}]}`, ""},
		"said explicitly":   {`{"user":"nora","messages":{"id":"m1","content":"I live in Oslo.","role":"user","mode":"persistent"}}`, ""},
		"other content":     {`{"user":"nora","messages":[{"content":"a"},{"id":"m1","content":"I live in Bergen."}]}`, "messages[1].id"},
		"other role":        {`{"user":"nora","messages":{"id":"m1","content":"I live in Oslo.","role":"tool"}}`, "messages[0].id"},
		"other mode":        {`{"user":"nora","messages":{"id":"m1","content":"I live in Oslo.","mode":"backfill"}}`, "messages[0].id"},
		"of another scope":  {`{"user":"nora","messages":{"id":"m2","content":"x"}}`, ""},
		"of another source": {`{"user":"nora","messages":{"id":"m3","content":"x"}}`, ""},
		"of another user":   {`{"user":"ben","messages":{"id":"m1","content":"x"}}`, ""},
	} {
		r := newRig(t)
		r.store.put(e)
		r.store.put(other)
		r.store.put(foreign)
		a := r.do(http.MethodPost, "/v1/episodes", tc.body, "Idempotency-Key", "k")
		if tc.field == "" {
			if a.status != http.StatusAccepted {
				t.Errorf("%s: %d %s", name, a.status, a.body)
			}
			continue
		}
		if p := a.problem(t); p.Status != http.StatusConflict || p.Code != api.CodeIDConflict || p.Field != tc.field {
			t.Errorf("%s: %+v", name, p)
		}
		if n := len(r.publisher.sent()); n > 0 {
			t.Errorf("%s: %d are published", name, n)
		}
		// A refused request does not use the key up.
		if a := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":"x"}`, "Idempotency-Key", "k"); a.status != http.StatusAccepted {
			t.Errorf("%s: the key: %d %s", name, a.status, a.body)
		}
	}
}

func TestAStoreThatIsDownRefusesNoID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.fail(errDown)
	if a := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":{"id":"m1","content":"x"}}`); a.status != http.StatusAccepted {
		t.Errorf("%d %s", a.status, a.body)
	}
}
