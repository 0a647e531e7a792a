package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

func usersIsolated(c *caller) {
	c.one("ADD", alice, "I live in Oslo")
	c.one("ADD", bob, "I like Python")
	if got := c.search(bob, "Where do I live? In Oslo?", nil); says(got, "Oslo") {
		c.Errorf("%v", memories(got))
	}
	if got := c.search(alice, "Oslo", nil); !says(got, "Oslo") {
		c.Errorf("%v", memories(got))
	}
}

func levelsMatch(c *caller) {
	c.one("ADD", object{"user_id": "alice", "agent_id": "helper"}, "I live in Oslo")
	for _, tc := range []struct {
		user, agent string
		want        bool
	}{{"alice", "helper", true}, {"alice", "other", false}, {"bob", "helper", false}} {
		who := object{"user_id": tc.user, "agent_id": tc.agent}
		if got := says(c.search(who, "Oslo", nil), "Oslo"); got != tc.want {
			c.Errorf("search %v: %v", tc, got)
		}
		if got := says(c.all(who), "Oslo"); got != tc.want {
			c.Errorf("list %v: %v", tc, got)
		}
	}
}

const scopeWords = "At least one of user_id, agent_id"

func noScope(c *caller) {
	c.refused(http.StatusBadRequest, scopeWords, http.MethodPost, "/v1/memories/", nil, object{"messages": "My name is Bob"})
}

func emptyScope(c *caller) {
	empty := object{"user_id": "", "agent_id": "", "run_id": "", "query": "x", "messages": "My name is Bob"}
	for _, path := range []string{"/v1/memories/", "/v1/memories/search/"} {
		c.refused(http.StatusBadRequest, scopeWords, http.MethodPost, path, nil, empty)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		c.refused(http.StatusBadRequest, scopeWords, method, "/v1/memories/", url.Values{"user_id": {""}}, nil)
	}
}

func runsIsolated(c *caller) {
	for run, city := range map[string]string{"session-1": "Oslo", "session-2": "Lima"} {
		c.one("ADD", object{"run_id": run}, "I live in "+city)
	}
	for run, other := range map[string]string{"session-1": "Lima", "session-2": "Oslo"} {
		who := object{"run_id": run}
		if got := c.search(who, "Where do I live?", nil); len(got) != 1 || says(got, other) {
			c.Errorf("search %s: %v", run, memories(got))
		}
		if got := c.all(who); len(got) != 1 || says(got, other) {
			c.Errorf("list %s: %v", run, memories(got))
		}
	}
}

// events are the events of a history.
func eventsOf(history []object) (out []any) {
	for _, h := range history {
		out = append(out, h["event"])
	}
	return out
}

func addMakesHistory(c *caller) {
	got := c.history(c.one("ADD", bob, "My name is Bob")["id"])
	if !slices.Equal(eventsOf(got), []any{"ADD"}) || got[0]["old_value"] != nil || got[0]["new_value"] != "The user's name is Bob." {
		c.Errorf("%v", got)
	}
}

func updateAppendsHistory(c *caller) {
	got := c.history(c.updated())
	if !slices.Equal(eventsOf(got), []any{"ADD", "UPDATE"}) || got[1]["old_value"] != got[0]["new_value"] || got[1]["new_value"] != newText {
		c.Errorf("%v", got)
	}
}

func deleteInHistory(c *caller) {
	id := c.updated()
	c.ok(http.MethodDelete, c.memory(id), nil, nil)
	got := c.history(id)
	if !slices.Equal(eventsOf(got), []any{"ADD", "UPDATE", "DELETE"}) || got[2]["is_deleted"] != true || got[1]["is_deleted"] != false {
		c.Errorf("%v", got)
	}
}

func historyInOrder(c *caller) {
	id := c.updated()
	for n := range 5 {
		c.ok(http.MethodPut, c.memory(id), nil, object{"text": fmt.Sprintf("Bob has %d names.", n)})
	}
	got := c.history(id)
	if len(got) != 7 {
		c.Fatalf("%v", got)
	}
	var last time.Time
	for n, h := range got {
		at, err := time.Parse(time.RFC3339, h["timestamp"].(string))
		if err != nil || at.Before(last) || n > 0 && h["old_value"] != got[n-1]["new_value"] {
			c.Errorf("%d: %v after %v, %v", n, h, last, err)
		}
		last = at
	}
}

// tagged stores memories with a tag and a place and returns a search by a filter.
func (c *caller) tagged() (found func(filter any) []string) {
	c.Helper()
	for text, metadata := range map[string]object{
		"note one":   {"tag": "work", "place": "oslo"},
		"note two":   {"tag": "home", "place": "oslo"},
		"note three": {"tag": "work", "place": "lima"},
		"note four":  {"tag": "idle", "place": "lima"},
	} {
		c.stored(bob, text, metadata)
	}
	return func(filter any) []string {
		c.Helper()
		got := memories(c.search(bob, "note", object{"filters": filter}))
		for i := range got {
			got[i] = strings.TrimPrefix(got[i], "note ")
		}
		slices.Sort(got)
		return got
	}
}

// is a condition of a filter.
func is(field, operator string, value any) object {
	return object{"field": field, "operator": operator, "value": value}
}

func (c *caller) same(got []string, want ...string) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Errorf("found %v, want %v", got, want)
	}
}

func filtersEqual(c *caller) {
	c.same(c.tagged()(is("tag", "eq", "work")), "one", "three")
}

func filtersIn(c *caller) {
	c.same(c.tagged()(is("tag", "in", []string{"work", "home"})), "one", "three", "two")
}

func filtersAnd(c *caller) {
	c.same(c.tagged()(object{"AND": []object{is("tag", "eq", "work"), is("place", "eq", "oslo")}}), "one")
}

func filtersOr(c *caller) {
	c.same(c.tagged()(object{"OR": []object{is("tag", "eq", "home"), is("place", "eq", "lima")}}), "four", "three", "two")
}

func filtersNot(c *caller) {
	found := c.tagged()
	c.same(found(object{"NOT": is("tag", "eq", "work")}), "four", "two")
	c.same(found(object{"NOT": []object{is("tag", "eq", "work"), is("place", "eq", "oslo")}}), "four")
}

func filtersContains(c *caller) {
	c.stored(bob, "User likes Python for ML", nil)
	c.stored(bob, "User likes Julia for ML", nil)
	got := c.search(bob, "ML", object{"filters": is("memory", "contains", "Python")})
	c.same(memories(got), "User likes Python for ML")
}

// google adds the conversation of the cases about the graph.
func (c *caller) google() {
	c.Helper()
	c.add(bob, "My friend Alice works at Google.")
	c.add(bob, "Alice likes sailing.")
}

func entitiesAppear(c *caller) {
	c.google()
	kinds := map[any]any{}
	for _, e := range c.results(c.ok(http.MethodPost, "/v1/entities/", nil, bob)) {
		kinds[e["name"]] = e["type"]
	}
	if kinds["Alice"] != "person" || kinds["Google"] != "organization" {
		c.Errorf("%v", kinds)
	}
}

func relationsAppear(c *caller) {
	c.google()
	for _, r := range c.results(c.ok(http.MethodGet, "/v1/entities/Alice/relations/", url.Values{"user_id": {"bob"}}, nil)) {
		if r["relationship"] == "works_at" && r["target"] == "Google" {
			return
		}
	}
	c.Error("Alice does not work at Google")
}

func searchesGraph(c *caller) {
	c.google()
	c.likes(bob)
	got := c.search(bob, "Google", object{"limit": 3})
	if !says(got, "Alice works at Google") || !says(got, "sailing") {
		c.Errorf("%v", memories(got))
	}
}
