package query

import (
	"net/http"
	"strings"
	"testing"

	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestBadInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 257)
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	nested := strings.Repeat(`{"a":`, 31) + "1" + strings.Repeat("}", 31)
	const post, get = http.MethodPost, http.MethodGet
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		code, field              string
	}{
		{"not JSON", post, "/v1/episodes", `{oops`, 400, "malformed", "body"},
		{"form", post, "/v1/episodes", `user=nora&messages=x`, 400, "malformed", "body"},
		{"empty", post, "/v1/episodes", ``, 400, "malformed", "body"},
		{"blank", post, "/v1/episodes", ` `, 400, "malformed", "body"},
		{"array", post, "/v1/episodes", `[]`, 400, "invalid_field", "body"},
		{"trailing", post, "/v1/episodes", `{"user":"a"} {}`, 400, "malformed", "body"},
		{"not UTF-8", post, "/v1/episodes", "{\"user\":\"\xff\"}", 400, "malformed", "body"},
		{"duplicate", post, "/v1/episodes", `{"user":"a","user":"b"}`, 400, "malformed", "user"},
		{"duplicate within", post, "/v1/episodes", `{"user":"a","messages":[{"content":"a","content":"b"}]}`, 400, "malformed", "messages[0].content"},
		{"deep", post, "/v1/episodes", deep, 400, "malformed", strings.TrimSuffix(strings.Repeat("a.", 32), ".")},
		{"too large", post, "/v1/episodes", `{"user":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "body_too_large", "body"},
		{"user is a number", post, "/v1/episodes", `{"user":7}`, 400, "invalid_field", "user"},
		{"content is a number", post, "/v1/episodes", `{"user":"a","messages":[{"content":"x"},{"content":7}]}`, 400, "invalid_field", "messages[1].content"},
		{"one message is wrong", post, "/v1/episodes", `{"user":"a","messages":{"content":7}}`, 400, "invalid_field", "messages.content"},
		{"messages are a number", post, "/v1/episodes", `{"user":"a","messages":7}`, 400, "invalid_field", "messages"},
		{"no messages", post, "/v1/episodes", `{"user":"a"}`, 400, "invalid_field", "messages"},
		{"empty messages", post, "/v1/episodes", `{"user":"a","messages":[]}`, 400, "invalid_field", "messages"},
		{"no content", post, "/v1/episodes", `{"user":"a","messages":[{"role":"user"}]}`, 400, "invalid_field", "messages[0].content"},
		{"role", post, "/v1/episodes", `{"user":"a","messages":[{"content":"x","role":"boss"}]}`, 400, "invalid_field", "messages[0].role"},
		{"mode", post, "/v1/episodes", `{"user":"a","messages":[{"content":"x","mode":"incognito"}]}`, 400, "invalid_field", "messages[0].mode"},
		{"timestamp", post, "/v1/episodes", `{"user":"a","messages":[{"content":"x","timestamp":"soon"}]}`, 400, "invalid_field", "messages[0].timestamp"},
		{"metadata", post, "/v1/episodes", `{"user":"a","messages":[{"content":"x","metadata":{"intent":"?"}}]}`, 400, "invalid_field", "messages[0].metadata.intent"},
		{"message id", post, "/v1/episodes", `{"user":"a","messages":[{"content":"x","id":"` + long + `"}]}`, 400, "invalid_field", "messages[0].id"},
		{"same message id", post, "/v1/episodes", `{"user":"a","messages":[{"content":"x","id":"1"},{"content":"y","id":"1"}]}`, 400, "invalid_field", "messages[1].id"},
		{"content too large", post, "/v1/episodes", `{"user":"a","messages":[{"content":"` + strings.Repeat("x", 256<<10+1) + `"}]}`, 413, "body_too_large", "messages[0].content"},
		{"metadata too large", post, "/v1/episodes", `{"user":"a","messages":[{"content":"x","metadata":{"k":"` + strings.Repeat("x", 16<<10) + `"}}]}`, 413, "body_too_large", "messages[0].metadata"},
		{"no scope", post, "/v1/episodes", `{"messages":"x"}`, 400, "scope_missing", "user"},
		{"long user", post, "/v1/episodes", `{"user":"` + long + `","messages":"x"}`, 400, "invalid_field", "user"},
		{"control", post, "/v1/episodes", `{"session":"a\u0000b","messages":"x"}`, 400, "invalid_field", "session"},
		{"bad project", post, "/v1/episodes?project=" + long, `{"user":"a","messages":"x"}`, 400, "invalid_field", "project"},
		{"negative timeout", post, "/v1/episodes", `{"user":"a","messages":"x","timeout":-1}`, 400, "invalid_field", "timeout"},
		{"long timeout", post, "/v1/episodes", `{"user":"a","messages":"x","timeout":1e300}`, 400, "invalid_field", "timeout"},
		{"wait", post, "/v1/episodes?wait=perhaps", `{"user":"a","messages":"x"}`, 400, "invalid_field", "wait"},
		{"limit too high", get, "/v1/episodes?all=true&limit=1001", ``, 400, "invalid_field", "limit"},
		{"limit negative", get, "/v1/episodes?user=a&limit=-1", ``, 400, "invalid_field", "limit"},
		{"limit no number", get, "/v1/episodes?user=a&limit=ten", ``, 400, "invalid_field", "limit"},
		{"after", get, "/v1/episodes?user=a&limit=1&after=soon", ``, 400, "invalid_field", "after"},
		{"before", get, "/v1/episodes?user=a&limit=1&before=x", ``, 400, "invalid_field", "before"},
		{"cursor", get, "/v1/episodes?user=a&limit=1&cursor=!!", ``, 400, "invalid_field", "cursor"},
		{"cursor of nothing", get, "/v1/episodes?user=a&limit=1&cursor=Zm9v", ``, 400, "invalid_field", "cursor"},
		{"cursor of a list of facts", get, "/v1/episodes?user=a&limit=1&cursor=" + seal(store.FactCursor{ID: "f"}), ``, 400, "invalid_field", "cursor"},
		{"at", get, "/v1/episodes?user=a&limit=1&at=Zm9v", ``, 400, "invalid_field", "at"},
		{"user twice", get, "/v1/episodes?limit=1&user=a&user=b", ``, 400, "invalid_field", "user"},
		{"user in query", get, "/v1/episodes?limit=1&user=" + long, ``, 400, "invalid_field", "user"},
		{"fact kinds", get, "/v1/facts?user=a&kinds=semantic,odd", ``, 400, "invalid_field", "kinds"},
		{"fact valid_at", get, "/v1/facts?user=a&valid_at=x", ``, 400, "invalid_field", "valid_at"},
		{"fact cursor", get, "/v1/facts?user=a&cursor=x", ``, 400, "invalid_field", "cursor"},
		{"fact revision", get, "/v1/facts/x?revision=-1", ``, 400, "invalid_field", "revision"},
		{"unknown fact", get, "/v1/facts/x", ``, 404, "not_found", ""},
		{"search without text", post, "/v1/search", `{"user":"a"}`, 400, "invalid_field", "text"},
		{"search with empty text", post, "/v1/search", `{"user":"a","text":"","query":""}`, 400, "invalid_field", "text"},
		{"search for two texts", post, "/v1/search", `{"user":"a","text":"x","query":"y"}`, 400, "invalid_field", "query"},
		{"search limit", post, "/v1/search", `{"user":"a","text":"x","limit":1001}`, 400, "invalid_field", "limit"},
		{"search types", post, "/v1/search", `{"user":"a","text":"x","types":["edge"]}`, 400, "invalid_field", "types"},
		{"search kinds", post, "/v1/search", `{"user":"a","text":"x","kinds":["odd"]}`, 400, "invalid_field", "kinds"},
		{"search after", post, "/v1/search", `{"user":"a","text":"x","after":"soon"}`, 400, "invalid_field", "after"},
		{"search user", post, "/v1/search", `{"text":"x","user":"` + long + `"}`, 400, "invalid_field", "user"},
		{"search at", post, "/v1/search", `{"user":"a","text":"x","at":"?"}`, 400, "invalid_field", "at"},
		{"remember nothing", post, "/v1/facts", `{"user":"a","text":" "}`, 400, "invalid_field", "text"},
		{"remember nobody's", post, "/v1/facts", `{"text":"x"}`, 400, "scope_missing", "user"},
		{"remember kind", post, "/v1/facts", `{"user":"a","text":"x","kind":"odd"}`, 400, "invalid_field", "kind"},
		{"remember confidence", post, "/v1/facts", `{"user":"a","text":"x","confidence":1.5}`, 400, "invalid_field", "confidence"},
		{"remember time", post, "/v1/facts", `{"user":"a","text":"x","event_time":"x"}`, 400, "invalid_field", "event_time"},
		{"remember much", post, "/v1/facts", `{"user":"a","text":"` + strings.Repeat("x", 256<<10+1) + `"}`, 413, "body_too_large", "text"},
		{"remember deep", post, "/v1/facts", `{"user":"a","text":"x","metadata":` + nested + `}`, 400, "malformed", "metadata" + strings.Repeat(".a", 30)},
		{"correct to nothing", post, "/v1/facts/f1/correct", `{}`, 400, "invalid_field", "text"},
		{"correct unknown", post, "/v1/facts/f1/correct", `{"text":"x"}`, 404, "not_found", ""},
		{"recent of nobody", get, "/v1/episodes?limit=1", ``, 400, "scope_missing", "user"},
		{"facts of nobody", get, "/v1/facts", ``, 400, "scope_missing", "user"},
		{"facts of nobody in a project", get, "/v1/facts?project=p&all=false", ``, 400, "scope_missing", "user"},
		{"facts of one and all", get, "/v1/facts?user=a&all=true", ``, 400, "invalid_field", "all"},
		{"search of nobody", post, "/v1/search", `{"text":"x"}`, 400, "scope_missing", "user"},
		{"search of one and all", post, "/v1/search", `{"text":"x","agent":"a","all":true}`, 400, "invalid_field", "all"},
		{"holds of nobody", get, "/v1/holds", ``, 400, "scope_missing", "user"},
		{"export of nobody", get, "/v1/export", ``, 400, "scope_missing", "user"},
		{"audit of nobody", get, "/v1/audit", ``, 400, "scope_missing", "user"},
		{"ledger of nobody", get, "/v1/ledger", ``, 400, "scope_missing", "user"},
		{"report on nobody", get, "/v1/reports/yield", ``, 400, "scope_missing", "user"},
		{"delete all", http.MethodDelete, "/v1/scopes?all=true", ``, 400, "invalid_field", "all"},
		{"delete no scope", http.MethodDelete, "/v1/scopes", ``, 400, "scope_missing", "user"},
		{"delete empty scope", http.MethodDelete, "/v1/scopes?user", ``, 400, "scope_missing", "user"},
		{"audit limit", get, "/v1/audit?user=a&limit=-1", ``, 400, "invalid_field", "limit"},
		{"audit after", get, "/v1/audit?user=a&after=x", ``, 400, "invalid_field", "after"},
		{"export user", get, "/v1/export?user=" + long, ``, 400, "invalid_field", "user"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.do(tc.method, tc.path, tc.body).problem(t)
			if p.Status != tc.status || p.Code != tc.code || p.Field != tc.field || p.Detail == "" {
				t.Errorf("%+v", p)
			}
			if len(p.Detail) > 300 {
				t.Errorf("the detail is %d bytes long", len(p.Detail))
			}
			if n := len(r.publisher.sent()); n > 0 {
				t.Errorf("%d published", n)
			}
		})
	}
}

func TestBadIfMatchAndKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if p := r.do(http.MethodPost, "/v1/facts/f1/confirm", "", "If-Match", "soon").problem(t); p.Field != "If-Match" || p.Status != 400 {
		t.Errorf("%+v", p)
	}
	if p := r.do(http.MethodPost, "/v1/facts/f1/confirm", "", "Idempotency-Key", strings.Repeat("k", 257)).problem(t); p.Field != "Idempotency-Key" || p.Status != 400 {
		t.Errorf("%+v", p)
	}
}

func TestHostileIdentifiersAreKeptAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"a/../b", "*", ">", "%", "_", "😀", "a.b", "' OR 1=1 --", "%41", strings.Repeat("x", 256), "A", "é", "é"} {
		body := api.Record{Scope: api.Scope{User: id, Agent: id, Session: id}, Messages: api.Messages{{ID: id, Content: id}}}
		if _, err := r.client.Record(t.Context(), body, ""); err != nil {
			t.Fatalf("%q: %v", id, err)
		}
		all := r.publisher.sent()
		last := all[len(all)-1]
		got := last.p.(events.EpisodeRecorded)
		if got.Scope != (scope.Scope{Project: "default", User: id, Agent: id, Session: id}) || got.Content != id || last.meta.ID != id {
			t.Errorf("%q: %+v", id, got)
		}
	}
}
