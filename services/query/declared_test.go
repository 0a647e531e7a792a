package query

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
)

func TestUnknownIsRefused(t *testing.T) {
	t.Parallel()
	const post, get, del = http.MethodPost, http.MethodGet, http.MethodDelete
	for _, tc := range []struct{ method, path, body, field, nearest string }{
		{get, "/v1/facts?usr=rich", "", "usr", "user"},
		{get, "/v1/facts?User=rich", "", "User", "user"},
		{get, "/v1/facts?user=a&kind=opinion", "", "kind", "kinds"},
		{get, "/v1/facts?user=a&as_off=2026-01-01", "", "as_off", "as_of"},
		{get, "/v1/facts/f?as_off=2026-01-01", "", "as_off", "as_of"},
		{get, "/v1/episodes?user=a&limit=1&curser=x", "", "curser", "cursor"},
		{get, "/v1/digest?project=p", "", "project", ""},
		{get, "/v1/reports?project=p", "", "project", ""},
		{del, "/v1/scopes?user=a&raze=true", "", "raze", "erase"},
		{del, "/v1/scopes?user=a&sesion=s", "", "sesion", "session"},
		{post, "/v1/search?user=a", `{"text":"x","user":"a"}`, "user", ""},
		{post, "/v1/episodes", `{"user":"nora","messages":"x","mesages":1}`, "mesages", "messages"},
		{post, "/v1/episodes", `{"User":"nora","messages":"x"}`, "User", "user"},
		{post, "/v1/episodes", `{"user":"nora","messages":"x","mode":"incognito"}`, "mode", ""},
		{post, "/v1/episodes", `{"user":"nora","messages":"x","request":"r"}`, "request", ""},
		{post, "/v1/episodes", `{"user":"nora","messages":[{"content":"x"},{"content":"y","timestmp":1}]}`, "messages[1].timestmp", "timestamp"},
		{post, "/v1/episodes", `{"user":"nora","messages":{"content":"x","Role":"user"}}`, "messages.Role", "role"},
		{post, "/v1/episodes", `{"user":"nora","messages":{"content":"x","prompt":"p"}}`, "messages.prompt", ""},
		{post, "/v1/search", `{"user":"a","text":"x","lmit":5}`, "lmit", "limit"},
		{post, "/v1/facts", `{"user":"a","text":"x","subjct":"y"}`, "subjct", "subject"},
		{post, "/v1/facts/f/correct", `{"text":"x","subject":"y"}`, "subject", "object"},
		{post, "/v1/facts/f/confirm", `{"text":"x"}`, "text", ""},
		{post, "/v1/sessions/s/end", `{"user":"a","reason":"timeout"}`, "reason", ""},
		{del, "/v1/scopes?user=a", `{"erase":true}`, "erase", ""},
	} {
		r := newRig(t)
		r.store.facts = []store.Fact{fact1("f", 1, "x")}
		p := r.do(tc.method, tc.path, tc.body).problem(t)
		if p.Status != 400 || p.Code != api.CodeInvalidField || p.Field != tc.field || !strings.Contains(p.Detail, "unknown") || !strings.Contains(p.Detail, tc.nearest) {
			t.Errorf("%s %s %s: %+v", tc.method, tc.path, tc.body, p)
		}
		if len(r.publisher.sent()) > 0 {
			t.Errorf("%s %s %s: it is published", tc.method, tc.path, tc.body)
		}
	}
}

func TestAmbiguousIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for path, want := range map[string]api.Problem{
		"/v1/facts?user=a&user=b":             {Code: api.CodeInvalidField, Field: "user"},
		"/v1/facts?user=a&limit=1&limit=2":    {Code: api.CodeInvalidField, Field: "limit"},
		"/v1/facts?user=a&kinds=x&kinds=y":    {Code: api.CodeInvalidField, Field: "kinds"},
		"/v1/facts?user=a;limit=1":            {Code: api.CodeMalformed, Field: "query"},
		"/v1/facts?user=%zz":                  {Code: api.CodeMalformed, Field: "query"},
		"/v1/deadletters/1?project=a&project": {Code: api.CodeInvalidField, Field: "project"},
	} {
		if p := r.do(http.MethodGet, path, "").problem(t); p.Status != 400 || p.Code != want.Code || p.Field != want.Field {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if a := r.do(http.MethodGet, "/v1/audit?user=nora&kind=add&kind=update", ""); a.status != 200 {
		t.Errorf("a list: %d %s", a.status, a.body)
	}
}

// A route that takes no body takes an empty object, and refuses what it would
// ignore.
func TestBodyOfARouteWithoutOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, body := range []string{"", " ", "{}", "null"} {
		if a := r.do(http.MethodGet, "/v1/ledger?all=true", body); a.status != 200 {
			t.Errorf("%q: %d %s", body, a.status, a.body)
		}
	}
	for _, body := range []string{"user=a", `["x"]`, "{", strings.Repeat(" ", maxStrayBody-1) + "x"} {
		if p := r.do(http.MethodGet, "/v1/ledger?all=true", body).problem(t); p.Code != api.CodeMalformed || p.Field != "body" {
			t.Errorf("%.20q: %+v", body, p)
		}
	}
	if a := r.do(http.MethodGet, "/healthz?probe=1", ""); a.status != 200 {
		t.Errorf("a probe with a parameter: %d", a.status)
	}
}

// Every operation of the description refuses what the description does not have.
func TestDescribedRoutesRefuseUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var doc struct {
		Paths      map[string]map[string]struct{ RequestBody map[string]any }
		Components struct {
			Schemas map[string]struct{ AdditionalProperties any }
		}
	}
	if err := json.Unmarshal([]byte(r.do(http.MethodGet, "/openapi.json", "").body), &doc); err != nil {
		t.Fatal(err)
	}
	routes := 0
	for path, operations := range doc.Paths {
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		path = strings.NewReplacer("{id}", "x", "{name}", "yield", "{sequence}", "1").Replace(path)
		for method, op := range operations {
			routes++
			method = strings.ToUpper(method)
			if p := r.do(method, path+"?unheard=1", "").problem(t); p.Code != api.CodeInvalidField || p.Field != "unheard" {
				t.Errorf("%s %s: %+v", method, path, p)
			}
			if p := r.do(method, path, `{"unheard":1}`).problem(t); p.Code != api.CodeInvalidField || p.Field != "unheard" {
				t.Errorf("%s %s with a body (declared %v): %+v", method, path, op.RequestBody != nil, p)
			}
		}
	}
	if routes < 25 {
		t.Errorf("%d routes", routes)
	}
	for _, name := range []string{"Record", "Message", "Remember", "Correct", "EndSession", "Search"} {
		if doc.Components.Schemas[name].AdditionalProperties != false {
			t.Errorf("%s: additional properties %v", name, doc.Components.Schemas[name].AdditionalProperties)
		}
	}
}
