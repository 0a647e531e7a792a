package mem0

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
)

// serve returns the routes over a native API.
func serve(t *testing.T, native http.HandlerFunc) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	for _, r := range Routes(native, slog.New(slog.DiscardHandler)) {
		mux.Handle(r.Pattern, r.Handler) // panics on a pattern that is there twice
	}
	return mux
}

func do(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	h.ServeHTTP(out, httptest.NewRequest(method, path, strings.NewReader(body)))
	return out
}

// Every route is reached under its mount with and without the last slash, and
// every answer is JSON.
func TestRoutesAnswerBothSpellings(t *testing.T) {
	t.Parallel()
	h := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	for mount, table := range map[string]map[string]action{"": hosted, Hosted: hosted, Compat: compat} {
		for pattern := range table {
			method, path, _ := strings.Cut(pattern, " ")
			path = strings.NewReplacer("{id}", "a%2Fb%20c", "{type}", "user", "{name}", "x", "{org}", "o", "{project}", "p").Replace(path)
			for _, end := range []string{"", "/"} {
				if slices.Contains(native, method+" "+mount+path+end) {
					continue
				}
				got := do(h, method, mount+path+end, "")
				if got.Code == http.StatusMovedPermanently || got.Header().Get("Content-Type") != "application/json" || !json.Valid(got.Body.Bytes()) {
					t.Errorf("%s %s%s%s: %d %s", method, mount, path, end, got.Code, got.Body)
				}
			}
		}
	}
}

func TestAddRecords(t *testing.T) {
	t.Parallel()
	var got string
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Idempotency-Key") + string(body)
		_, _ = io.WriteString(w, `{"status":"accepted","at":"token"}`)
	})
	for _, tc := range []struct{ body, want string }{
		{`{"messages":"x","user_id":"ada"}`, `{"user":"ada","messages":[{"role":"user","content":"x"}]}`},
		{`{"messages":{"role":"assistant","content":"x"},"filters":{"agent_id":"a"}}`, `{"agent":"a","messages":[{"role":"assistant","content":"x"}]}`},
		{
			`{"messages":[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}},{"text":"b"}]}],"run_id":"r","timestamp":7,"infer":false}`,
			`{"session":"r","messages":[{"role":"system","content":"a\nb","timestamp":7}],"infer":false}`,
		},
		{
			`{"messages":"x","app_id":"app","expiration_date":"2030-01-01","metadata":{"subject":"s","tag":"t","mem0.x":1},"async_mode":true}`,
			`{"messages":[{"role":"user","content":"x","metadata":{"mem0.app_id":"app","mem0.expiration_date":"2030-01-01","mem0.mem0.x":1,"mem0.subject":"s","tag":"t"}}]}`,
		},
	} {
		answer := do(h, "POST", "/v3/memories/add/?project=p", tc.body)
		if got != "POST /v1/episodes?project=p "+tc.want {
			t.Errorf("%s asks %s", tc.body, got)
		}
		if answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), `"event_id":"token"`) {
			t.Errorf("%s: %d %s", tc.body, answer.Code, answer.Body)
		}
	}
	for _, body := range []string{
		`{"messages":"x"}`, `{"user_id":"ada"}`, `{"user_id":"ada","messages":[]}`, `{"user_id":"ada","messages":"  "}`,
		`{"user_id":"ada","messages":[{"role":"user","content":{"type":"image_url"}}]}`, `{"user_id":"ada","messages":[1]}`, `{`,
		`{"user_id":"ada","messages":"x","expiration_date":"soon"}`, `{"user_id":7,"messages":"x"}`, `{"user_id":"*","messages":"x"}`,
	} {
		got = ""
		if answer := do(h, "POST", "/v3/memories/add", body); answer.Code != http.StatusBadRequest || got != "" {
			t.Errorf("%s: %d %s, asks %s", body, answer.Code, answer.Body, got)
		}
	}
}

// The metadata of a fact is shown without the members of this package.
func TestMetadataRoundTrip(t *testing.T) {
	t.Parallel()
	given := map[string]any{"subject": "maths", "tag": "x", "mem0.app_id": "mine", "intent": 7.0}
	in := kept(given, "app", "2030-01-01")
	if diff := cmp.Diff(given, told(in)); diff != "" {
		t.Error(diff)
	}
	m := viewMemory(api.Fact{Metadata: in})
	if *m.AppID != "app" || *m.ExpirationDate != "2030-01-01" {
		t.Errorf("%+v", m)
	}
	if kept(nil, "", "") != nil || told(nil) != nil {
		t.Error("nothing becomes something")
	}
}

// A body that another parser could read differently is refused, and reaches no handler.
func TestAddRefusesAnAmbiguousBody(t *testing.T) {
	t.Parallel()
	h := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it is recorded") })
	for body, why := range map[string]string{
		"{\"user_id\":\"ada\",\"messages\":\"caf\xe9\"}":    "UTF-8",
		`{"user_id":"ada","messages":"\ud800"}`:             "surrogate",
		`{"user_id":"ada","user_id":"eve","messages":"hi"}`: "user_id",
		`{"user_id":"ada","messages":"hi"} {}`:              "body",
		`{"user_id":7,"messages":"hi"}`:                     "user_id",
		`{"user_id":"ada","messages":"hi","metadata":{"a":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}}`: "nests too deep",
	} {
		if got := do(h, "POST", "/v3/memories/add/", body); got.Code != http.StatusBadRequest || !strings.Contains(got.Body.String(), why) {
			t.Errorf("%q: %d %s, want 400 with %q", body, got.Code, got.Body, why)
		}
	}
}

// TestCollections: a call sees the collection of its project, and how much is in it.
func TestCollections(t *testing.T) {
	t.Parallel()
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.Query().Get("project"); r.URL.Path != "/v1/stats" || got != "tea" {
			t.Errorf("%s of %q", r.URL.Path, got)
		}
		_, _ = io.WriteString(w, `{"facts":7}`)
	})
	for path, want := range map[string]string{
		"/compat/v1/collections?project=tea":         `["tea"]`,
		"/compat/v1/collections/tea/?project=tea":    `{"count":7,"name":"tea"}`,
		"/compat/v1/collections/coffee/?project=tea": `{"detail":"Collection not found!","error":"Collection not found!"}`,
	} {
		if got := strings.TrimSpace(do(h, "GET", path, "").Body.String()); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestRefusalsHaveBothMembers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		problem *api.Problem
		status  int
		detail  string
	}{
		{api.NewProblem(http.StatusNotFound, api.CodeNotFound, "", "no such fact"), http.StatusNotFound, "Memory not found!"},
		{api.NewProblem(http.StatusBadRequest, api.CodeInvalidField, "text", "is empty"), http.StatusBadRequest, "text: is empty"},
		{api.NewProblem(http.StatusTooManyRequests, api.CodeRateLimited, "", "slow down"), http.StatusTooManyRequests, "slow down"},
	} {
		h := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.problem.Status)
			_ = json.NewEncoder(w).Encode(tc.problem)
		})
		got := do(h, "GET", "/v1/memories/x/", "")
		var answer struct{ Detail, Error string }
		if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if got.Code != tc.status || answer.Detail != tc.detail || answer.Error != tc.detail {
			t.Errorf("%d %+v", got.Code, answer)
		}
		if late := got.Header().Get("Retry-After"); (late != "") != (tc.status == http.StatusTooManyRequests) {
			t.Errorf("Retry-After %q of %d", late, tc.status)
		}
	}
}

// Only a search that found an expired memory pays for a filter.
func TestSearchSkipsExpired(t *testing.T) {
	t.Parallel()
	var asked []api.Search
	expires := map[string]any{"mem0.expiration_date": "2020-01-01"}
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var q api.Search
		_ = json.NewDecoder(r.Body).Decode(&q)
		asked = append(asked, q)
		found := api.Found{Results: []api.Hit{{Score: 0.2, Fact: &api.Fact{ID: "a"}, Channels: map[string]api.Channel{"vector": {Score: 0.5}}}}}
		if q.Text == "old" && !strings.Contains(string(q.Filters), "expiration_date") {
			found.Results[0].Fact.Metadata = expires
		}
		_ = json.NewEncoder(w).Encode(found)
	})
	for body, want := range map[string]int{
		`{"query":"new","top_k":2,"filters":{"user_id":"ada"}}`:                     1,
		`{"query":"old","top_k":2,"filters":{"user_id":"ada"}}`:                     2,
		`{"query":"old","top_k":2,"filters":{"user_id":"ada"},"show_expired":true}`: 1,
	} {
		asked = nil
		got := do(h, "POST", "/v3/memories/search/", body)
		var answer struct{ Results []Memory }
		if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if len(asked) != want || len(answer.Results) != 1 || *answer.Results[0].Score != 0.5 || asked[0].Limit != 2 {
			t.Errorf("%s: %d searches, %s", body, len(asked), got.Body)
		}
	}
	for _, body := range []string{`{"query":"x"}`, `{"query":"x","filters":{"NOT":{"user_id":"a"}}}`, `{"query":"x","filters":{"user_id":"a"},"top_k":-1}`} {
		if got := do(h, "POST", "/v3/memories/search/", body); got.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", body, got.Code)
		}
	}
}

// A change without a text keeps a text that another caller writes meanwhile.
func TestUpdateMeetsAnother(t *testing.T) {
	t.Parallel()
	revision, conflicts := uint64(1), 0
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fact := api.Fact{ID: "f", Revision: revision, Text: "text " + strconv.FormatUint(revision, 10)}
		if r.Method == http.MethodGet {
			if revision == 1 {
				revision = 2 // the other caller writes after this read
			}
			_ = json.NewEncoder(w).Encode(fact)
			return
		}
		if r.Header.Get("If-Match") != strconv.Quote(strconv.FormatUint(revision, 10)) {
			conflicts++
			p := api.NewProblem(http.StatusConflict, api.CodeFactConflict, "", "changed")
			w.WriteHeader(p.Status)
			_ = json.NewEncoder(w).Encode(p)
			return
		}
		var c api.Correct
		_ = json.NewDecoder(r.Body).Decode(&c)
		fact.Text, fact.Metadata = c.Text, c.Metadata
		_ = json.NewEncoder(w).Encode(api.Written{Status: "done", Fact: &fact})
	})
	got := do(h, "PUT", "/v1/memories/f/", `{"metadata":{"tag":"x"}}`)
	var m Memory
	if err := json.Unmarshal(got.Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if got.Code != http.StatusOK || conflicts != 1 || m.Memory != "text 2" || m.Metadata["tag"] != "x" {
		t.Errorf("%d conflicts: %d %s", conflicts, got.Code, got.Body)
	}
}
