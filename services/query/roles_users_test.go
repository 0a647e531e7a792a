package query

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"palimpsest/internal/auth"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// asksAbout are requests about the user bob, as the families of routes name users. A route
// ignores or refuses what it does not know.
func asksAbout(pattern string) (out [][3]string) { // method, path, body
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = http.MethodPost, pattern
	}
	path = strings.NewReplacer("{$}", "", "{id}", "b1", "{sequence}", "1", "{at}", "x", "{name}", "bob", "{type}", "user",
		"{org}", "o", "{project}", "default").Replace(path)
	queries := []string{"", "?user=bob", "?user_id=bob", "?all=true", "?user=nora&all=true", "?user=bob&text=where", "?filters=" + `%7B%22user_id%22:%22bob%22%7D`}
	bodies := []string{""}
	if method != http.MethodGet && method != http.MethodDelete {
		queries = queries[:2]
		bodies = []string{
			`{}`, `{"user":"bob"}`, `{"user":"bob","text":"where"}`, `{"user":"bob","messages":"hello"}`, `{"all":true,"text":"where"}`,
			`{"user_id":"bob","query":"where"}`, `{"filters":{"user_id":"bob"},"query":"where"}`, `{"filters":{"OR":[{"user_id":"bob"},{"user_id":"nora"}]},"query":"where"}`,
			`{"user_id":"bob","messages":[{"role":"user","content":"x"}]}`, `{"text":"x"}`, `{"request":"r","user":"bob"}`,
			`{"memories":[{"memory_id":"b1","text":"x"}]}`, `{"session":"s","user":"bob"}`, `{"fact":"b1","rating":"POSITIVE"}`,
			`{"memory_id":"b1","feedback":"POSITIVE"}`,
		}
	}
	for _, query := range queries {
		for _, body := range bodies {
			out = append(out, [3]string{method, path + query, body})
		}
	}
	return out
}

// TestP6EveryRouteKeepsToTheUsersOfAKey asks every route that is served about a user whom
// the key does not reach: no answer shows anything of that user, and nothing is published
// for them. The requests show the user to a key that reaches everybody.
func TestP6EveryRouteKeepsToTheUsersOfAKey(t *testing.T) {
	t.Parallel()
	h := guarded(t)
	bob := scope.Scope{Project: "default", User: "bob"}
	theirs := fact1("b1", 1, "bob lives in Rome")
	theirs.Scope = bob
	h.rig.store.facts = append(h.rig.store.facts, theirs, fact1("n1", 1, "nora lives in Oslo"))
	learned := committed(1)
	learned.Data.Facts, learned.Data.Scope, learned.Scope = []events.Fact{theirs.Fact}, bob, bob
	h.rig.journal.commit(learned)
	_, one := h.key(t, auth.Key{Project: "default", Role: auth.Writer, Users: []string{"nora"}})
	_, all := h.key(t, auth.Key{Project: "default", Role: auth.Admin})
	_, elsewhere := h.key(t, auth.Key{Project: "elsewhere", Role: auth.Admin})
	served := h.rig.service.patterns
	shown, asked := map[string]bool{}, 0
	for _, route := range slices.Sorted(maps.Keys(served)) {
		for _, pattern := range served[route] {
			for _, r := range asksAbout(pattern) {
				for who, token := range map[string]string{"of another user": one, "of another project": elsewhere} {
					asked++
					a := h.rig.do(r[0], r[1], r[2], "X-API-Key", token)
					if strings.Contains(a.body, "Rome") {
						t.Errorf("%s %s %s shows bob to a key %s: %s", r[0], r[1], r[2], who, a.body)
					}
					if a.status >= http.StatusInternalServerError && a.status != http.StatusNotImplemented {
						t.Errorf("%s %s %s: %d %s", r[0], r[1], r[2], a.status, a.body)
					}
				}
				for _, s := range h.rig.publisher.sent() {
					if owner := s.p.Owner(); owner.Project == "default" && owner.User != "nora" {
						t.Fatalf("%s %s %s published %s for %s", r[0], r[1], r[2], s.p.Kind(), owner)
					}
				}
			}
		}
	}
	for _, route := range slices.Sorted(maps.Keys(served)) {
		for _, pattern := range served[route] {
			for _, r := range asksAbout(pattern) {
				if r[0] == http.MethodGet && strings.Contains(h.rig.do(r[0], r[1], r[2], "X-API-Key", all).body, "Rome") {
					shown[route] = true
				}
			}
		}
	}
	if len(shown) < 5 {
		t.Errorf("only %v show bob to a key for everybody: the requests are of no use", slices.Sorted(maps.Keys(shown)))
	}
	t.Logf("%d requests to %d routes; %d show bob to a key for everybody", asked, len(served), len(shown))
}
