package e2e

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"testing"
)

var (
	alice = object{"user_id": "alice"}
	bob   = object{"user_id": "bob"}
)

// cases are those that share a server.
var cases = []numbered{
	{1, "add a single fact", addsOne, ""},
	{2, "add a conversation", addsConversation, ""},
	{3, "add nothing of note", addsNothing, ""},
	{4, "search by meaning", searchesByMeaning, ""},
	{5, "search with a limit", searchesWithLimit, ""},
	{6, "get by id", getsByID, ""},
	{7, "get an unknown id", getsUnknown, ""},
	{8, "list a scope", listsScope, ""},
	{9, "update overwrites", updateOverwrites, ""},
	{10, "update changes the hash", updateChangesHash, ""},
	{11, "delete removes", deleteRemoves, ""},
	{12, "delete a scope", deletesScope, ""},
	{14, "the same again", sameAgain, ""},
	{15, "a contradiction updates", contradictionUpdates, ""},
	{16, "a refinement merges", refinementMerges, ""},
	{17, "a negation removes", negationRemoves, ""},
	{18, "several events", severalEvents, ""},
	{19, "users are isolated", usersIsolated, ""},
	{20, "all levels of a scope match", levelsMatch, ""},
	{21, "no scope", noScope, ""},
	{22, "runs are isolated", runsIsolated, ""},
	{23, "an add makes history", addMakesHistory, ""},
	{24, "an update appends history", updateAppendsHistory, ""},
	{25, "a delete is marked in history", deleteInHistory, ""},
	{26, "history is in order", historyInOrder, ""},
	{27, "filter: eq", filtersEqual, ""},
	{28, "filter: in", filtersIn, ""},
	{29, "filter: AND", filtersAnd, ""},
	{30, "filter: OR", filtersOr, ""},
	{31, "filter: NOT", filtersNot, ""},
	{32, "filter: contains", filtersContains, ""},
	{33, "entities", entitiesAppear, ""},
	{34, "relations", relationsAppear, ""},
	{35, "search through the graph", searchesGraph, ""},
	{38, "an empty scope", emptyScope, ""},
}

func addsOne(c *caller) {
	got := c.one("ADD", bob, "My name is Bob")
	if got["memory"] != "The user's name is Bob." {
		c.Errorf("%v", got)
	}
}

func addsConversation(c *caller) {
	got := c.add(alice, []object{
		{"role": "user", "content": "Hi, I'm Alice. I work at Acme Corp as a data scientist."},
		{"role": "assistant", "content": "Nice to meet you, Alice! Which tools do you use?"},
		{"role": "user", "content": "I prefer PyTorch over TensorFlow."},
	})
	for _, want := range []string{"Alice", "Acme Corp", "PyTorch"} {
		if !says(got, want) {
			c.Errorf("nothing about %s: %v", want, memories(got))
		}
	}
	for _, each := range got {
		if each["event"] != "ADD" {
			c.Errorf("%v", each)
		}
	}
}

func addsNothing(c *caller) {
	if got := c.add(object{"user_id": "x"}, "hello"); len(got) > 0 {
		c.Errorf("%v", got)
	}
}

func searchesByMeaning(c *caller) {
	c.one("ADD", bob, "I like Python")
	eventually(c, "the vector of the memory", func() error {
		for _, m := range c.search(bob, "programming languages", nil) {
			if score, _ := m["score"].(float64); says([]object{m}, "Python") && score > 0.5 {
				return nil
			}
		}
		return fmt.Errorf("%v", c.search(bob, "programming languages", nil))
	})
}

// likes adds three memories.
func (c *caller) likes(who object) {
	c.Helper()
	for _, what := range []string{"Python", "hiking", "jazz"} {
		c.one("ADD", who, "I like "+what)
	}
}

func searchesWithLimit(c *caller) {
	c.likes(bob)
	c.one("ADD", bob, "I like chess")
	if got := c.search(bob, "What do I like?", object{"limit": 3}); len(got) != 3 {
		c.Errorf("%d memories: %v", len(got), memories(got))
	}
}

func getsByID(c *caller) {
	added := c.one("ADD", bob, "My name is Bob")
	got := c.ok(http.MethodGet, c.memory(added["id"]), nil, nil).(object)
	if got["id"] != added["id"] || got["memory"] != added["memory"] || got["user_id"] != "bob" {
		c.Errorf("%v", got)
	}
}

func getsUnknown(c *caller) {
	c.refused(http.StatusNotFound, "not found", http.MethodGet, "/v1/memories/fake-id/", nil, nil)
}

func listsScope(c *caller) {
	c.likes(alice)
	if got := c.all(alice); len(got) != 3 {
		c.Errorf("%v", memories(got))
	}
}

const newText = "Bob prefers to be called Robert."

// updated adds a memory and overwrites it.
func (c *caller) updated() (id any) {
	c.Helper()
	id = c.one("ADD", bob, "My name is Bob")["id"]
	c.ok(http.MethodPut, c.memory(id), nil, object{"text": newText})
	return id
}

func updateOverwrites(c *caller) {
	if got := c.ok(http.MethodGet, c.memory(c.updated()), nil, nil).(object); got["memory"] != newText {
		c.Errorf("%v", got)
	}
}

func updateChangesHash(c *caller) {
	sum := md5.Sum([]byte(newText))
	if got := c.ok(http.MethodGet, c.memory(c.updated()), nil, nil).(object); got["hash"] != hex.EncodeToString(sum[:]) {
		c.Errorf("%v", got["hash"])
	}
}

func deleteRemoves(c *caller) {
	id := c.one("ADD", bob, "My name is Bob")["id"]
	c.ok(http.MethodDelete, c.memory(id), nil, nil)
	c.refused(http.StatusNotFound, "not found", http.MethodGet, c.memory(id), nil, nil)
}

func deletesScope(c *caller) {
	c.likes(alice)
	c.likes(bob)
	c.ok(http.MethodDelete, "/v1/memories/", url.Values{"user_id": {"alice"}}, nil)
	if got := c.all(alice); len(got) > 0 {
		c.Errorf("%v", memories(got))
	}
	if got := c.all(bob); len(got) != 3 {
		c.Errorf("another user's: %v", memories(got))
	}
}

// resets: the whole project is erased, with its history.
func sameAgain(c *caller) {
	first := c.one("ADD", bob, "I like Python")
	if again := c.one("NONE", bob, "I like Python"); again["id"] != first["id"] {
		c.Errorf("%v, then %v", first, again)
	}
	if got := c.all(bob); len(got) != 1 {
		c.Errorf("%v", memories(got))
	}
}

// changes adds a first message, then a second one that must change the same memory.
func (c *caller) changes(first, second string) (change object) {
	c.Helper()
	before := c.one("ADD", bob, first)
	for _, change := range c.add(bob, second) {
		if change["id"] == before["id"] {
			if change["old_memory"] != before["memory"] {
				c.Errorf("%v was %v", change, before["memory"])
			}
			return change
		}
	}
	c.Fatalf("%q did not change %v", second, before)
	return nil
}

func contradictionUpdates(c *caller) {
	got := c.changes("I live in NYC", "I moved to San Francisco")
	if got["event"] != "UPDATE" || !says([]object{got}, "San Francisco") || says(c.all(bob), "NYC") {
		c.Errorf("%v", got)
	}
}

func refinementMerges(c *caller) {
	got := c.changes("I work in tech", "I work at Google as a senior engineer")
	if got["event"] != "UPDATE" || !says([]object{got}, "Google") || !says([]object{got}, "senior engineer") {
		c.Errorf("%v", got)
	}
}

func negationRemoves(c *caller) {
	got := c.changes("I am vegetarian", "I started eating meat again")
	if got["event"] != "UPDATE" && got["event"] != "DELETE" || says(c.all(bob), "vegetarian") {
		c.Errorf("%v, %v", got, memories(c.all(bob)))
	}
}

func severalEvents(c *caller) {
	c.one("ADD", bob, "I live in NYC")
	events := map[any]int{}
	for _, change := range c.add(bob, []object{
		{"role": "user", "content": "I moved to San Francisco."},
		{"role": "user", "content": "I like sailing, and I have a dog named Rex."},
	}) {
		events[change["event"]]++
	}
	if events["UPDATE"] != 1 || events["ADD"] < 2 {
		c.Errorf("%v", events)
	}
}

// TestCase42 starts without a configuration: a memory is added, found and listed.
func TestCase42(t *testing.T) {
	t.Parallel()
	c := &caller{T: t, at: start(t, t.TempDir()).HTTP, project: "default"}
	c.one("ADD", bob, "I like Python")
	eventually(t, "the memory is found", func() error {
		if got := c.search(bob, "Python", nil); !says(got, "Python") {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}
