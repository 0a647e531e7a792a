package query

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/internal/auth/bucket"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// holders make keys, and call routes with them.
type holders struct {
	rig  *rig
	ring *auth.Ring
	keys *auth.Keys
}

// guarded is a service that takes keys, with what users of two projects know.
func guarded(t *testing.T) *holders {
	t.Helper()
	env := brokertest.Start(t)
	h := &holders{keys: auth.NewKeys(bucket.New(env.JS), time.Now)}
	var err error
	if h.ring, err = auth.OpenRing(t.Context(), bucket.New(env.JS), nil, auth.Limits{}, time.Now, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	following := make(chan struct{})
	go func() { defer close(following); _ = h.ring.Run(t.Context()) }()
	t.Cleanup(func() { <-following })
	h.rig = newRig(t, func(c *Config, d *Deps) {
		c.AllowReset = true
		d.Gate = &auth.Gate{Ring: h.ring, Mode: auth.Required, Log: d.Logger}
		c.Wait = 50 * time.Millisecond // no pipeline stands behind the fakes
	})
	return h
}

// key makes a key, and returns it once the service knows it.
func (h *holders) key(t *testing.T, k auth.Key) (auth.Key, string) {
	t.Helper()
	made, token, err := h.keys.Create(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	h.until(t, token, nil)
	return made, token
}

func (h *holders) until(t *testing.T, token string, want error) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); ; {
		if _, _, err := h.ring.Admit(token); err == want { //nolint:errorlint // sentinels, unwrapped
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the key does not become %v", want)
		}
		<-time.After(time.Millisecond)
	}
}

// ask calls a route, with a body where it takes one.
func (h *holders) ask(pattern, query, token string) answer {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = http.MethodPost, pattern
	}
	path = strings.NewReplacer("{$}", "", "{id}", "f1", "{sequence}", "1", "{at}", "x", "{name}", "churn", "{type}", "user",
		"{org}", "o", "{project}", "p").Replace(path)
	body := ""
	if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		body = "{}"
	}
	var headers []string
	if token != "" {
		headers = []string{"Authorization", "Bearer " + token}
	}
	return h.rig.do(method, path+query, body, headers...)
}

// TestP6AuthorisationMatrix asks every route in the name of every role, of a
// revoked key and without a key. A route that is missing from the table keeps the
// service from being made.
func TestP6AuthorisationMatrix(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	tokens := map[auth.Role]string{auth.Anonymous: ""}
	for _, role := range []auth.Role{auth.Reader, auth.Writer, auth.Operator, auth.Admin} {
		_, tokens[role] = h.key(t, auth.Key{Project: "default", Role: role})
	}
	made, revoked := h.key(t, auth.Key{Project: "default", Role: auth.Admin})
	if _, err := h.keys.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	h.until(t, revoked, auth.ErrRevoked)

	served := h.rig.service.patterns
	for route := range roles {
		if len(served[route]) == 0 {
			t.Errorf("the table has a role for %s, which is no route", route)
		}
	}
	for _, route := range slices.Sorted(maps.Keys(served)) {
		need := roles[route]
		for _, pattern := range served[route] {
			for role, token := range tokens {
				want := 0 // whatever the route itself says
				switch {
				case role >= need:
				case role == auth.Anonymous:
					want = http.StatusUnauthorized
				default:
					want = http.StatusForbidden
				}
				checkRefusal(t, fmt.Sprintf("%s as %s", pattern, role), h.ask(pattern, "", token), want)
			}
			if need > auth.Anonymous {
				checkRefusal(t, pattern+" with a revoked key", h.ask(pattern, "", revoked), http.StatusUnauthorized)
				checkRefusal(t, pattern+" with an unknown key", h.ask(pattern, "", "pal_none"), http.StatusUnauthorized)
			}
		}
	}
}

// checkRefusal compares a status; want 0 is any that does not refuse the caller.
func checkRefusal(t *testing.T, what string, a answer, want int) {
	t.Helper()
	refused := a.status == http.StatusUnauthorized || a.status == http.StatusForbidden
	if want == 0 && refused || want != 0 && a.status != want {
		t.Errorf("%s: %d %s, want %d", what, a.status, a.body, want)
	}
	if a.status >= http.StatusInternalServerError && a.status != http.StatusNotImplemented {
		t.Errorf("%s: %d %s", what, a.status, a.body)
	}
}

// TestP6KeyFixesTheProject: every route that names a project refuses the key of
// another one, for every role.
func TestP6KeyFixesTheProject(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	_, token := h.key(t, auth.Key{Project: "default", Role: auth.Admin})
	for route, patterns := range h.rig.service.patterns {
		if !strings.Contains(route, " /v1/") || strings.HasPrefix(route, "hosted") || strings.HasPrefix(route, "compat") ||
			slices.Contains([]string{"GET /v1/digest", "GET /v1/reports", "GET /v1/rules"}, route) { // these take no project
			continue
		}
		a := h.ask(patterns[0], "?project=other&user=nora", token)
		if a.status == http.StatusBadRequest && strings.Contains(a.body, "unknown parameter") { // it takes no user
			a = h.ask(patterns[0], "?project=other", token)
		}
		if a.status != http.StatusForbidden && a.status != http.StatusBadRequest || strings.Contains(a.body, "unknown parameter") {
			t.Errorf("%s in another project: %d %s", route, a.status, a.body)
		}
		if sent := h.rig.publisher.sent(); len(sent) > 0 {
			t.Fatalf("%s published %+v", route, sent)
		}
	}
	for _, path := range []string{"/mem0/v1/memories?user_id=nora&project=other", "/v1/memories?user_id=nora&project=other"} {
		if a := h.rig.do("GET", path, "", "Authorization", "Token "+token); a.status != http.StatusForbidden {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

// TestP6KeyFillsInTheProject: a request that names no project gets that of its key.
func TestP6KeyFillsInTheProject(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	_, token := h.key(t, auth.Key{Project: "acme", Role: auth.Operator})
	a := h.rig.do("POST", "/v1/episodes", `{"user":"nora","messages":"I live in Oslo"}`, "X-API-Key", token)
	sent := h.rig.publisher.sent()
	if a.status != http.StatusAccepted || len(sent) != 1 || sent[0].p.Owner().Project != "acme" {
		t.Fatalf("%d %s, sent %+v", a.status, a.body, sent)
	}
	if a := h.rig.do("GET", "/v1/ping/", "", "Authorization", "Token "+token); a.status != http.StatusOK || !strings.Contains(a.body, `"project_id":"acme"`) {
		t.Errorf("mem0's ping: %d %s", a.status, a.body)
	}
	h.rig.deadLetters.deadLetters = []pipeline.Letter{{Sequence: 1}}
	if a := h.rig.do("GET", "/v1/deadletters", "", "X-API-Key", token); a.status != http.StatusOK || h.rig.deadLetters.asked.Project != "acme" {
		t.Errorf("dead letters of %q: %d", h.rig.deadLetters.asked.Project, a.status)
	}
	if a := h.rig.do("POST", "/v1/deadletters/1/retry", "", "X-API-Key", token); a.status != http.StatusNotFound {
		t.Errorf("the letter of another project: %d %s", a.status, a.body)
	}
	h.rig.store.facts = append(h.rig.store.facts, fact1("n1", 1, "nora lives in Oslo"))
	if a := h.rig.do("GET", "/v1/facts?user=nora", "", "X-API-Key", token); a.status != http.StatusOK || strings.Contains(a.body, "Oslo") {
		t.Errorf("facts of another project: %d %s", a.status, a.body)
	}
}

// TestP6UsersOfAKey: a key for users reads and writes their data alone.
func TestP6UsersOfAKey(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	bob := scope.Scope{Project: "default", User: "bob"}
	theirs := fact1("b1", 1, "bob lives in Rome")
	theirs.Scope = bob
	h.rig.store.facts = append(h.rig.store.facts, theirs, fact1("n1", 1, "nora lives in Oslo"), fact1("n-0badcafe", 1, "nora swims"))
	learned := committed(1)
	learned.Data.Facts, learned.Data.Scope, learned.Scope = []events.Fact{h.rig.store.facts[len(h.rig.store.facts)-2].Fact}, nora, nora
	h.rig.journal.commit(learned)
	_, one := h.key(t, auth.Key{Project: "default", Role: auth.Writer, Users: []string{"nora"}})
	_, two := h.key(t, auth.Key{Project: "default", Role: auth.Writer, Users: []string{"nora", "ada"}})
	_, all := h.key(t, auth.Key{Project: "default", Role: auth.Writer})
	const found, forbidden = http.StatusNotFound, http.StatusForbidden
	for name, c := range map[string]struct {
		method, path, body string
		one, two           int // statuses; 0 is any below 400
	}{
		"own list":          {"GET", "/v1/facts?user=nora", "", 0, 0},
		"other list":        {"GET", "/v1/facts?user=bob", "", found, found},
		"nobody's list":     {"GET", "/v1/facts?user=", "", found, found},
		"whole project":     {"GET", "/v1/facts?all=true", "", 0, forbidden},
		"an agent's list":   {"GET", "/v1/facts?agent=assistant", "", 0, forbidden},
		"own fact":          {"GET", "/v1/facts/n1", "", 0, 0},
		"own fact then":     {"GET", "/v1/facts/n1?as_of=2026-04-03", "", 0, 0},
		"own short id":      {"GET", "/v1/facts/0badcafe", "", 0, 0},
		"other fact then":   {"GET", "/v1/facts/b1?as_of=2026-04-03", "", found, found},
		"other fact":        {"GET", "/v1/facts/b1", "", found, found},
		"other history":     {"GET", "/v1/facts/b1/history", "", found, found},
		"other explanation": {"GET", "/v1/facts/b1/explain", "", found, found},
		"other delete":      {"DELETE", "/v1/facts/b1", "", found, found},
		"other confirm":     {"POST", "/v1/facts/b1/confirm", "", found, found},
		"other correct":     {"POST", "/v1/facts/b1/correct", `{"text":"x"}`, found, found},
		"other scope":       {"DELETE", "/v1/scopes?user=bob", "", found, found},
		"an agent's scope":  {"DELETE", "/v1/scopes?agent=assistant", "", 0, forbidden},
		"own search":        {"POST", "/v1/search", `{"user":"nora","text":"where"}`, 0, 0},
		"other search":      {"POST", "/v1/search", `{"user":"bob","text":"where"}`, found, found},
		"wide search":       {"POST", "/v1/search", `{"all":true,"text":"where"}`, 0, forbidden},
		"other context":     {"POST", "/v1/context", `{"user":"bob","text":"where"}`, found, found},
		"own record":        {"POST", "/v1/episodes", `{"user":"nora","messages":"hello"}`, 0, 0},
		"other record":      {"POST", "/v1/episodes", `{"user":"bob","messages":"hello"}`, found, found},
		"nobody's record":   {"POST", "/v1/episodes", `{"agent":"assistant","messages":"hello"}`, found, found},
		"other statement":   {"POST", "/v1/facts", `{"user":"bob","text":"bob is rich"}`, found, found},
		"other end":         {"POST", "/v1/sessions/s1/end", `{"user":"bob"}`, found, found},
		"other episodes":    {"GET", "/v1/episodes?user=bob", "", found, found},
		"other holds":       {"GET", "/v1/holds?user=bob", "", found, found},
		"other export":      {"GET", "/v1/export?user=bob", "", found, found},
		"mem0: other list":  {"GET", "/mem0/v1/memories?user_id=bob", "", found, found},
		"mem0: other fact":  {"GET", "/v1/memories/b1", "", found, found},
		"mem0: own fact":    {"GET", "/v1/memories/n1", "", 0, 0},
		"mem0: other add":   {"POST", "/v3/memories/add", `{"user_id":"bob","messages":[{"role":"user","content":"x"}]}`, found, found},
	} {
		for who, ask := range map[string]struct {
			token string
			want  int
		}{"one user": {one, c.one}, "two users": {two, c.two}} {
			a := h.rig.do(c.method, c.path, c.body, "X-API-Key", ask.token)
			if ask.want == 0 && a.status >= http.StatusBadRequest || ask.want != 0 && a.status != ask.want {
				t.Errorf("%s, a key for %s: %d %s, want %d", name, who, a.status, a.body, ask.want)
			}
			if strings.Contains(a.body, "Rome") || strings.Contains(a.body, `"b1"`) && ask.want == 0 {
				t.Errorf("%s, a key for %s reads another user: %s", name, who, a.body)
			}
		}
	}
	for _, s := range h.rig.publisher.sent() {
		if user := s.p.Owner().User; user != "nora" && user != "ada" {
			t.Errorf("published %s for the user %q", s.p.Kind(), user)
		}
	}
	if a := h.rig.do("GET", "/v1/facts/b1", "", "X-API-Key", all); a.status != http.StatusOK {
		t.Errorf("a key for all users: %d %s", a.status, a.body)
	}
}

// TestP6ToolsAreTheCallers: tools of MCP and routes of mem0 call the native API in
// the name of who called them.
func TestP6ToolsAreTheCallers(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	_, reader := h.key(t, auth.Key{Project: "default", Role: auth.Reader, Users: []string{"nora"}})
	call := func(tool, arguments string) string {
		return h.rig.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`,
			"X-API-Key", reader, "Content-Type", "application/json", "Accept", "application/json, text/event-stream").body
	}
	if body := call("remember_fact", `{"user":"nora","text":"nora is rich"}`); !strings.Contains(body, "role writer") || !strings.Contains(body, `"isError":true`) {
		t.Errorf("a reader remembers: %s", body)
	}
	if body := call("search_memory", `{"user":"bob","query":"where"}`); !strings.Contains(body, "no such user") {
		t.Errorf("another user is searched: %s", body)
	}
	if body := call("search_memory", `{"user":"nora","query":"where"}`); strings.Contains(body, `"isError":true`) || !strings.Contains(body, `"result"`) {
		t.Errorf("the own user: %s", body)
	}
	if body := call("memory_stats", `{"user":"nora"}`); strings.Contains(body, `"isError":true`) || !strings.Contains(body, `"balanced":true`) {
		t.Errorf("statistics of the own user: %s", body)
	}
	if body := call("memory_stats", `{"user":"bob"}`); !strings.Contains(body, "no such user") {
		t.Errorf("statistics of another user: %s", body)
	}
	if sent := h.rig.publisher.sent(); len(sent) > 0 {
		t.Errorf("published %+v", sent)
	}
}

// TestP6LedgerOfAProjectIsTheOperators: a reader accounts for its own episodes.
func TestP6LedgerOfAProjectIsTheOperators(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	_, one := h.key(t, auth.Key{Project: "default", Role: auth.Reader, Users: []string{"nora"}})
	_, reader := h.key(t, auth.Key{Project: "default", Role: auth.Reader})
	_, operator := h.key(t, auth.Key{Project: "default", Role: auth.Operator})
	for _, c := range []struct {
		who, token, query string
		want              int
	}{
		{"a reader of one user", one, "user=nora", 200},
		{"a reader of one user", one, "user=bob", 404},
		{"a reader of one user", one, "all=true", 200}, // which is that user
		{"a reader", reader, "user=bob", 200},
		{"a reader", reader, "all=true", 403},
		{"an operator", operator, "all=true", 200},
	} {
		if a := h.rig.do("GET", "/v1/ledger?"+c.query, "", "X-API-Key", c.token); a.status != c.want {
			t.Errorf("%s, %s: %d %s, want %d", c.who, c.query, a.status, a.body, c.want)
		}
	}
}

// Commands and the answers of repeated requests are those of the key.
func TestP6RepeatsStayWithTheirKey(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	a1, first := h.key(t, auth.Key{Project: "default", Role: auth.Writer, Users: []string{"nora"}})
	_, second := h.key(t, auth.Key{Project: "default", Role: auth.Writer, Users: []string{"bob"}})
	for _, c := range []struct{ token, user string }{{first, "nora"}, {second, "bob"}} {
		body := `{"user":"` + c.user + `","messages":"hello"}`
		if a := h.rig.do("POST", "/v1/episodes", body, "X-API-Key", c.token, "Idempotency-Key", "k"); a.status != http.StatusAccepted {
			t.Errorf("%s: %d %s", c.user, a.status, a.body)
		}
	}
	h.rig.do("POST", "/v1/facts", `{"user":"nora","text":"nora swims"}`, "X-API-Key", first)
	for _, s := range h.rig.publisher.sent() {
		if c, ok := s.p.(events.CommandRequested); ok && c.Actor != "api:"+a1.ID {
			t.Errorf("a command of %q", c.Actor)
		}
	}
}

// A caller that is no operator of all projects learns whether the process is ready,
// and not why it is not: the reasons name scopes of other projects.
func TestP6ReadinessNamesNoScopes(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	h.rig.ready.Ready = false
	h.rig.ready.Checks["store"] = api.Check{Error: errDown.Error(), LatencyMS: 2}
	h.rig.ready.Checks["stages"] = api.Check{OK: true, Details: map[string]any{"stalled_scopes": []string{"other/bob"}}}
	tokens := map[string]string{"nobody": ""}
	_, tokens["reader"] = h.key(t, auth.Key{Project: "default", Role: auth.Reader})
	_, tokens["admin of a project"] = h.key(t, auth.Key{Project: "default", Role: auth.Admin})
	_, tokens["operator"] = h.key(t, auth.Key{Role: auth.Operator})
	for who, token := range tokens {
		a := h.rig.do("GET", "/readyz", "", "X-API-Key", token)
		told := strings.Contains(a.body, "10.0.0.7") && strings.Contains(a.body, "other/bob")
		if a.status != http.StatusServiceUnavailable || told != (who == "operator") || !told && strings.ContainsAny(a.body, "/") {
			t.Errorf("%s: %d %s", who, a.status, a.body)
		}
	}
}

// The description of the API says which role each operation takes.
func TestDescriptionNamesRoles(t *testing.T) {
	t.Parallel()
	a := newRig(t).do("GET", "/openapi.json", "")
	for _, want := range []string{`"bearer":["operator"]`, `"apiKey":["writer"]`, `"securitySchemes"`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s", want)
		}
	}
}
