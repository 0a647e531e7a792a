package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestDescription(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.do(http.MethodGet, "/openapi.json", "")
	var spec struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					}
				}
			}
			Parameters []struct{ Name, In string }
			Responses  map[string]json.RawMessage
		}
		Components struct {
			Schemas map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(a.body), &spec); err != nil {
		t.Fatal(err)
	}
	if spec.OpenAPI != "3.1.0" {
		t.Errorf("OpenAPI %q", spec.OpenAPI)
	}
	for route, body := range map[string]string{
		"POST /v1/episodes": "Record", "GET /v1/episodes": "", "POST /v1/sessions/{id}/end": "EndSession",
		"POST /v1/search": "Search", "GET /v1/facts": "", "POST /v1/facts": "Remember", "GET /v1/facts/{id}": "",
		"DELETE /v1/facts/{id}": "", "POST /v1/facts/{id}/correct": "Correct", "POST /v1/facts/{id}/confirm": "",
		"POST /v1/facts/{id}/restore": "", "GET /v1/facts/{id}/history": "", "GET /v1/facts/{id}/explain": "",
		"DELETE /v1/scopes": "", "GET /v1/ledger": "", "GET /v1/audit": "", "GET /v1/export": "", "GET /v1/digest": "", "GET /healthz": "",
		"GET /readyz": "", "GET /v1/deadletters": "", "GET /v1/deadletters/{sequence}": "",
		"POST /v1/deadletters/{sequence}/retry": "", "DELETE /v1/deadletters/{sequence}": "",
	} {
		method, path, _ := strings.Cut(route, " ")
		op, ok := spec.Paths[path][strings.ToLower(method)]
		if !ok {
			t.Errorf("%s is not described", route)
			continue
		}
		if len(op.Responses) == 0 {
			t.Errorf("%s: no responses", route)
		}
		ref := op.RequestBody.Content["application/json"].Schema.Ref
		if name := strings.TrimPrefix(ref, "#/components/schemas/"); name != body {
			t.Errorf("%s: body %q, want %q", route, name, body)
		}
		if body != "" && (spec.Components.Schemas[body] == nil || len(op.RequestBody.Content) != 1) {
			t.Errorf("%s: body %v", route, op.RequestBody.Content)
		}
		if strings.HasPrefix(path, "/v1/") && len(op.Parameters) == 0 {
			t.Errorf("%s: no parameters", route)
		}
	}
	for route, statuses := range map[string][]string{
		"/v1/episodes": {"200", "202", "default"}, "/v1/facts": {"200", "201", "202", "default"}, "/v1/facts/{id}/correct": {"200", "202", "default"},
	} {
		for _, status := range statuses {
			if spec.Paths[route]["post"].Responses[status] == nil {
				t.Errorf("%s: no response %s", route, status)
			}
		}
	}
	for name, want := range map[string]string{"Record": `"oneOf"`, "Message": `"oneOf"`, "Problem": `"code"`, "Search": `"valid_at"`} {
		if !strings.Contains(string(spec.Components.Schemas[name]), want) {
			t.Errorf("schema %s: %s", name, spec.Components.Schemas[name])
		}
	}
}

func TestDocsLoadNothing(t *testing.T) {
	t.Parallel()
	a := newRig(t).do(http.MethodGet, "/docs", "")
	if a.status != 200 || !strings.Contains(a.body, "/v1/facts/{id}/history") || !strings.HasPrefix(a.header.Get("Content-Type"), "text/html") {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if strings.Contains(a.body, "://") || strings.Contains(a.body, "<script") {
		t.Errorf("the page loads something: %s", a.body)
	}
}

// TestDocsEscapeValues holds each value of the page's template to an escape.
func TestDocsEscapeValues(t *testing.T) {
	t.Parallel()
	for _, action := range regexp.MustCompile(`\{\{[^}]*\}\}`).FindAllString(docsPage, -1) {
		if !regexp.MustCompile(`^\{\{(html \.[\w.]+|(range|with) \.?[\w.]*|end)\}\}$`).MatchString(action) {
			t.Errorf("%s writes a value as it is", action)
		}
	}
}

func TestHealthReadinessMetrics(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	health := into[map[string]string](t, r.do(http.MethodGet, "/healthz", ""), 200)
	if diff := cmp.Diff(map[string]string{"status": "ok", "version": "test"}, health); diff != "" {
		t.Error(diff)
	}
	if ready, err := r.client.Ready(t.Context()); err != nil || !ready.Ready {
		t.Errorf("Ready: %+v, %v", ready, err)
	}
	if a := r.do(http.MethodGet, "/metrics", ""); a.body != "palimpsest_up 1\n" {
		t.Errorf("metrics: %s", a.body)
	}
	*r.ready = api.Readiness{Checks: map[string]api.Check{"store": {Error: "closed"}}}
	got := into[api.Readiness](t, r.do(http.MethodGet, "/readyz", ""), http.StatusServiceUnavailable)
	if diff := cmp.Diff(*r.ready, got); diff != "" {
		t.Error(diff)
	}
	if ready, err := r.client.Ready(t.Context()); err == nil || ready.Checks["store"].Error != "closed" || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Ready of one that is not: %+v, %v", ready, err)
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if p := r.do(http.MethodGet, "/v2/facts", "").problem(t); p.Code != api.CodeNotFound || p.Status != 404 {
		t.Errorf("%+v", p)
	}
	a := r.do(http.MethodPut, "/v1/facts/x", "{}")
	if p := a.problem(t); p.Code != api.CodeMethodNotAllowed || p.Status != 405 || a.header.Get("Allow") != "GET, DELETE" {
		t.Errorf("%+v, Allow %q", p, a.header.Get("Allow"))
	}
	if a := r.do(http.MethodGet, "/v1/search", ""); a.status != 405 || a.header.Get("Allow") != "POST" {
		t.Errorf("%d %s", a.status, a.header.Get("Allow"))
	}
	if a := r.do(http.MethodHead, "/healthz", ""); a.status != 200 || a.body != "" {
		t.Errorf("HEAD: %d %q", a.status, a.body)
	}
}

func TestAnswersAreJSONWhateverIsAccepted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, accept := range []string{"", "*/*", "text/html", "application/xml;q=0.9", "application/json"} {
		if a := r.do(http.MethodGet, "/v1/facts?all=true", "", "Accept", accept); a.status != 200 || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %d %v", accept, a.status, a.header)
		}
		r.do(http.MethodGet, "/v1/facts/x", "", "Accept", accept).problem(t)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := scope.Scope{Project: "default", User: "ben"}
	r.store.accounts = []store.Account{
		{Scope: nora, Rule: "turn", Accepted: 5, Consolidated: 3, Pending: 1, Skipped: 1, Candidates: 4, Decided: 2, Held: 1, Dropped: 1},
		{Scope: other, Rule: "turn", Accepted: 2, Consolidated: 2},
		{Scope: scope.Scope{Project: "rival", User: "eve"}, Rule: "turn", Accepted: 9},
	}
	l, err := r.client.Ledger(t.Context(), everyone, true)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Account{{Rule: "turn", Accepted: 7, Consolidated: 5, Pending: 1, Skipped: 1, Candidates: 4, Decided: 2, Held: 1, Dropped: 1}}
	if diff := cmp.Diff(want, l.Totals); diff != "" || !l.Balanced || len(l.Accounts) != 2 {
		t.Errorf("balanced %v, %d accounts, totals (-want +got):\n%s", l.Balanced, len(l.Accounts), diff)
	}
	r.store.accounts[0].Pending = 2
	if l, err = r.client.Ledger(t.Context(), scope.Selector{User: ptr("nora")}, false); err != nil || l.Balanced || l.Accounts != nil {
		t.Errorf("unbalanced: %+v, %v", l, err)
	}
}

func TestWhatIsPerFactScopeRefusesTheSessionOfAUser(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	sel := scope.Selector{User: ptr("nora"), Session: ptr("s1")}
	for name, ask := range map[string]func() error{
		"ledger": func() error { _, err := r.client.Ledger(t.Context(), sel, false); return err },
		"export": func() error {
			for _, err := range r.client.Export(t.Context(), sel, false) {
				return err
			}
			return nil
		},
		"audit": func() error {
			for _, err := range r.client.Audit(t.Context(), sel, 0) {
				return err
			}
			return nil
		},
	} {
		var p *api.Problem
		if err := ask(); !errors.As(err, &p) || p.Code != api.CodeInvalidField || p.Field != "session" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	letter := func(sequence uint64, project string) pipeline.Letter {
		return pipeline.Letter{Sequence: sequence, Scope: scope.Scope{Project: project}, MessageBuried: events.MessageBuried{
			Service: "ingest", Stream: "EPISODES", Sequence: 70 + sequence, Code: "malformed", Reason: "is not JSON",
			Data: []byte("{oops"), Headers: map[string][]string{"A": {"b"}},
		}}
	}
	r.deadLetters.deadLetters = []pipeline.Letter{letter(1, "default"), letter(2, "rival"), letter(3, "")}
	first, err := r.client.DeadLetters(t.Context(), client.ListLetters{Limit: 2})
	if err != nil || len(first.Letters) != 2 || first.Next != 2 || first.Letters[0].Data != nil || first.Letters[0].MessageAt != 71 {
		t.Fatalf("%+v, %v", first, err)
	}
	rest, err := r.client.DeadLetters(t.Context(), client.ListLetters{After: first.Next, Limit: 2})
	if err != nil || len(rest.Letters) != 1 || rest.Next != 0 {
		t.Fatalf("%+v, %v", rest, err)
	}
	one, err := r.client.DeadLetter(t.Context(), 3)
	if err != nil || string(one.Data) != "{oops" || one.Headers["A"][0] != "b" {
		t.Fatalf("%+v, %v", one, err)
	}
	if s, err := r.client.RetryDeadLetter(t.Context(), 1); err != nil || s.Action != "retried" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := r.client.DropDeadLetter(t.Context(), 1); err != nil || s.Action != "dropped" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, path := range []string{"/v1/deadletters/9/retry", "/v1/deadletters/2/retry?project=default", "/v1/deadletters/3/retry?project=default"} {
		if p := r.do(http.MethodPost, path, "").problem(t); p.Code != api.CodeNotFound || p.Field != "sequence" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if diff := cmp.Diff([]string{"retry", "drop"}, r.deadLetters.did); diff != "" {
		t.Error(diff)
	}
	if p := r.do(http.MethodGet, "/v1/deadletters/x", "").problem(t); p.Code != api.CodeInvalidField || p.Field != "sequence" {
		t.Errorf("%+v", p)
	}
	if p := r.do(http.MethodGet, "/v1/deadletters?limit=1001", "").problem(t); p.Field != "limit" {
		t.Errorf("%+v", p)
	}
}

func TestDeadLettersAreNarrowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.do(http.MethodGet, "/v1/deadletters?service=decider&code=poison&user=nora&project=p", "")
	want := pipeline.LetterFilter{Service: "decider", Project: "p", User: "nora", Code: "poison"}
	if diff := cmp.Diff(want, r.deadLetters.asked); diff != "" || a.status != 200 {
		t.Errorf("%d: %s", a.status, diff)
	}
}

// A dead letter that cannot be retried is answered with the reason, and not as an
// outage.
func TestDeadLetterThatCannotBeRetried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{pipeline.ErrClipped, http.StatusConflict, api.CodeNotRetriable},
		{pipeline.ErrCommitted, http.StatusConflict, api.CodeNotRetriable},
		{pipeline.ErrUnfit, http.StatusConflict, api.CodeNotRetriable},
		{pipeline.ErrRemembered, http.StatusServiceUnavailable, api.CodeStreamUnavailable},
	} {
		r := newRig(t)
		r.deadLetters.deadLetters = []pipeline.Letter{{Sequence: 1}}
		r.deadLetters.err = fmt.Errorf("pipeline: retry dead letter 1: %w", c.err)
		if p := r.do(http.MethodPost, "/v1/deadletters/1/retry", "").problem(t); p.Status != c.status || p.Code != c.code || p.Detail == "" {
			t.Errorf("%v: %+v", c.err, p)
		}
	}
}
