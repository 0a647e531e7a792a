package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// numbered is one of the 42 behavioural cases of a memory API, by its number in the
// specification: CRUD 1 to 13, intelligence 14 to 18, scoping 19 to 22, history 23
// to 26, filters 27 to 32, graph 33 to 35, errors 36 to 38, configuration 39 to 42.
type numbered struct {
	number int
	name   string
	run    func(c *caller)
	// pending names the feature that the case waits for; empty for none.
	pending string
}

// TestCases runs the cases that need no server of their own on both memory stores,
// which is case 41. The embedder is an endpoint with fixed vectors.
func TestCases(t *testing.T) {
	t.Parallel()
	for name, memory := range eachMemory {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vectors := serveConcepts(t)
			i := start(t, t.TempDir(), "--config", settings(t, memory(t)+vectors.settings()))
			for _, c := range cases {
				t.Run(fmt.Sprintf("%02d %s", c.number, c.name), func(t *testing.T) {
					t.Parallel()
					if c.pending != "" {
						t.Skipf("waits for %s", c.pending)
					}
					c.run(&caller{T: t, at: i.HTTP, project: fmt.Sprintf("case-%d", c.number), vectors: vectors})
				})
			}
		})
	}
}

// eachMemory are the settings of the memory stores, each with a store of its own.
var eachMemory = map[string]func(*testing.T) string{
	"sqlite": func(*testing.T) string { return "memory: sqlite\n" },
	"redis": func(t *testing.T) string {
		t.Helper()
		url, namespace := redisNamespace(t)
		return fmt.Sprintf("memory: %s\nredis: {namespace: %s}\n", url, namespace)
	},
}

// settings writes a configuration file and returns its path.
func settings(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "palimpsest.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// caller is a client of the compat family with a project of its own.
type caller struct {
	*testing.T

	at, project string
	vectors     *concepts
}

// send sends a request below /compat and decodes the answer.
func (c *caller) send(method, path string, query url.Values, body any) (status int, answer any) {
	c.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.Fatal(err)
	}
	if query == nil {
		query = url.Values{}
	}
	query.Set("project", c.project)
	r, err := http.NewRequestWithContext(c.Context(), method, c.at+"/compat"+path+"?"+query.Encode(), bytes.NewReader(text))
	if err != nil {
		c.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(r) // follows no redirect
	if err != nil {
		c.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		c.Fatalf("%s %s: %s: %v", method, path, res.Status, err)
	}
	return res.StatusCode, answer
}

// ok is send for a request that must be answered with 200.
func (c *caller) ok(method, path string, query url.Values, body any) any {
	c.Helper()
	status, answer := c.send(method, path, query, body)
	if status != http.StatusOK {
		c.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// refused is send for a request that must be answered with status and words.
func (c *caller) refused(want int, words string, method, path string, query url.Values, body any) {
	c.Helper()
	status, answer := c.send(method, path, query, body)
	detail, _ := answer.(object)["detail"].(string)
	if status != want || !strings.Contains(detail, words) {
		c.Errorf("%s %s: %d %v; want %d with %q", method, path, status, answer, want, words)
	}
}

// add adds messages and returns the results.
func (c *caller) add(who object, messages any) []object {
	c.Helper()
	body := object{"messages": messages}
	for name, v := range who {
		body[name] = v
	}
	return c.results(c.ok(http.MethodPost, "/v1/memories/", nil, body))
}

// one is add for messages that must lead to one result, of that event.
func (c *caller) one(event string, who object, messages any) object {
	c.Helper()
	got := c.add(who, messages)
	if len(got) != 1 || got[0]["event"] != event {
		c.Fatalf("add %v: %v; want one %s", messages, got, event)
	}
	return got[0]
}

// search searches and returns the memories, best first.
func (c *caller) search(who object, query string, more object) []object {
	c.Helper()
	body := object{"query": query}
	for _, members := range []object{who, more} {
		for name, v := range members {
			body[name] = v
		}
	}
	return c.results(c.ok(http.MethodPost, "/v1/memories/search/", nil, body))
}

// all lists the memories of a scope.
func (c *caller) all(who object) []object {
	c.Helper()
	query := url.Values{}
	for name, v := range who {
		query.Set(name, v.(string))
	}
	return c.results(c.ok(http.MethodGet, "/v1/memories/", query, nil))
}

// history lists the changes of a memory, oldest first.
func (c *caller) history(id any) (out []object) {
	c.Helper()
	for _, each := range c.ok(http.MethodGet, c.memory(id)+"history/", nil, nil).([]any) {
		out = append(out, each.(object))
	}
	return out
}

// memory is the path of a memory.
func (c *caller) memory(id any) string {
	c.Helper()
	text, _ := id.(string)
	if text == "" {
		c.Fatalf("%v is no id", id)
	}
	return "/v1/memories/" + text + "/"
}

func (c *caller) results(answer any) (out []object) {
	c.Helper()
	list, ok := answer.(object)["results"].([]any)
	if !ok {
		c.Fatalf("no results: %v", answer)
	}
	for _, each := range list {
		out = append(out, each.(object))
	}
	return out
}

// memories are the texts of memories or results.
func memories(list []object) []string {
	out := []string{}
	for _, m := range list {
		text, _ := m["memory"].(string)
		out = append(out, text)
	}
	return out
}

// says reports whether a memory of the list contains words.
func says(list []object, words string) bool {
	return strings.Contains(strings.Join(memories(list), "\n"), words)
}

// stored stores a text verbatim with metadata and returns the memory's id.
func (c *caller) stored(who object, text string, metadata object) any {
	c.Helper()
	body := object{"infer": false, "metadata": metadata}
	for name, v := range who {
		body[name] = v
	}
	return c.one("ADD", body, text)["id"]
}
