package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// secret stands in every text of the other project.
const secret = "zanzibarite"

// TestP6AnyRequest sends requests that are made of the API's own description, valid
// and invalid, with the key of one project: none is answered with a 5xx, or outside
// its schema, and none reads or changes another project.
func TestP6AnyRequest(t *testing.T) {
	t.Parallel()
	seed, count := uint64(time.Now().UnixNano()), 400
	if os.Getenv("E2E_FULL") != "" {
		count = 20_000
	}
	if text := os.Getenv("TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("TEST_SEED=%d", seed)

	i := prepare(t, t.TempDir())
	i.env = []string{"PALIMPSEST_HTTP_AUTH=required"}
	i.begin()
	_, own := i.makesKey("--project", "own", "--role", "operator")
	_, other := i.makesKey("--project", "other", "--role", "operator")
	i.becomes(own, http.StatusOK)
	i.becomes(other, http.StatusOK)
	g := &generator{r: rand.New(rand.NewPCG(seed, 1)), t: t, i: i, key: own, answers: map[int]int{}, succeeded: map[string]bool{}}
	g.known(own, "I live in Oslo.")
	theirs := g.known(other, "I live in "+secret+".")
	g.ids = append(g.ids, theirs...)
	g.describe()
	before := i.exported(other)
	for n := range count {
		g.send(n)
	}
	t.Logf("answers by status: %v; %d of %d operations succeeded", g.answers, len(g.succeeded), len(g.operations))
	if 4*len(g.succeeded) < len(g.operations) {
		t.Errorf("only %v succeeded: the requests are of no use", slices.Sorted(maps.Keys(g.succeeded)))
	}
	if after := i.exported(other); after != before {
		t.Errorf("the other project changed:\n%s\n%s", before, after)
	}
}

// exported is all that a project knows.
func (i *process) exported(token string) string {
	i.t.Helper()
	c, err := client.New(i.HTTP, client.APIKey(token))
	if err != nil {
		i.t.Fatal(err)
	}
	var all bytes.Buffer
	for line, err := range c.Export(i.t.Context(), scope.Selector{All: true}, true) {
		if err != nil {
			i.t.Fatal(err)
		}
		all.Write(append(line, '\n'))
	}
	return all.String()
}

// generator makes requests.
type generator struct {
	r   *rand.Rand
	t   *testing.T
	i   *process
	key string
	ids []string // of facts, of both projects

	document   map[string]any
	compiler   *jsonschema.Compiler
	operations []operation
	answers    map[int]int     // by status
	succeeded  map[string]bool // operations
}

// operation is one of the description.
type operation struct {
	method, path string
	at           string // JSON pointer
	spec         map[string]any
}

// known has a project know something, and returns the ids of its facts.
func (g *generator) known(token, text string) (ids []string) {
	g.t.Helper()
	c, err := client.New(g.i.HTTP, client.APIKey(token))
	if err != nil {
		g.t.Fatal(err)
	}
	for _, user := range []string{"nora", "bob"} {
		said := api.Record{Scope: api.Scope{User: user, Session: "s1"}, Messages: []api.Message{{ID: "m1", Content: text}}, Wait: true}
		done, err := c.Record(g.t.Context(), said, "")
		if err != nil || len(done.Results) == 0 {
			g.t.Fatalf("record: %+v, %v", done, err)
		}
		for _, r := range done.Results {
			ids = append(ids, r.ID)
		}
	}
	g.ids = append(g.ids, ids...)
	return ids
}

// describe reads the description of the API.
func (g *generator) describe() {
	g.t.Helper()
	res, err := http.Get(g.i.HTTP + "/openapi.json")
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(text, &g.document)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		g.t.Fatal(err)
	}
	g.compiler = jsonschema.NewCompiler()
	if err := g.compiler.AddResource("openapi.json", plain); err != nil {
		g.t.Fatal(err)
	}
	for path, item := range ordered(g.document["paths"].(map[string]any)) {
		for method, spec := range ordered(item.(map[string]any)) {
			at := "/paths/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(path) + "/" + method
			g.operations = append(g.operations, operation{strings.ToUpper(method), path, at, spec.(map[string]any)})
		}
	}
	slices.SortFunc(g.operations, func(a, b operation) int { return strings.Compare(a.at, b.at) })
}

func (g *generator) pick(of ...string) string { return of[g.r.IntN(len(of))] }

// odd is a text that means nothing, or something else.
func (g *generator) odd() string {
	return g.pick("", "0", "-1", "x", "null", "\x00", "é\u0301🦊", "../..", "%2e", "*", ">", "a.b", "' OR 1=1 --", "@project:{other}",
		strings.Repeat("y", 300), "9999999999999999999999", "2026-13-45", "\xff\xfe", "other", "[]", "{}", "true")
}

// member is a value for a parameter or a member of that name.
func (g *generator) member(name string) string {
	switch name {
	case "project":
		return g.pick("own", "own", "other", "default", g.odd())
	case "user", "user_id":
		return g.pick("nora", "bob", "", g.odd())
	case "id", "fact", "at", "cursor", "sequence":
		return g.pick(g.pick(g.ids...), g.pick(g.ids...)[24:], "1", "f1", g.odd())
	case "from", "to", "after", "before", "valid_at", "as_of", "event_time", "valid_until", "now":
		return g.pick("2026-01-01", "2026-11-22T10:00:00Z", "yesterday", "2026-W19", g.odd())
	case "text", "query", "content", "messages":
		return g.pick("where does nora live?", "I moved to Lima.", secret, g.odd())
	case "limit":
		return g.pick("1", "10", "0", "1001", g.odd())
	}
	return g.pick("x", "true", "1", "add", g.odd())
}

// send makes a request of an operation and judges its answer.
func (g *generator) send(n int) {
	g.t.Helper()
	op := g.operations[g.r.IntN(len(g.operations))]
	path, query, headers := op.path, url.Values{}, http.Header{"Authorization": {"Bearer " + g.key}}
	for _, p := range list(op.spec["parameters"]) {
		p := p.(map[string]any)
		name, in := p["name"].(string), p["in"].(string)
		switch {
		case in == "path":
			value := url.PathEscape(g.member(name))
			if strings.Trim(value, ".") == "" {
				value = "none" // a path of dots is another path
			}
			path = strings.ReplaceAll(path, "{"+name+"}", value)
		case g.r.IntN(3) > 0 && name != "user" && name != "all":
		case in == "query":
			value := g.value(p["schema"].(map[string]any), name, 0)
			if text, ok := value.(string); ok {
				query.Set(name, text)
			} else {
				text, _ := json.Marshal(value)
				query.Set(name, string(text))
			}
		case in == "header" && name != "Accept": // which may ask for an answer without an end
			headers.Set(name, strings.Map(printable, g.member(name)))
		}
	}
	var body []byte
	if b, ok := op.spec["requestBody"].(map[string]any); ok {
		for _, media := range ordered(b["content"].(map[string]any)) {
			value := g.value(media.(map[string]any)["schema"].(map[string]any), "", 0)
			if m, ok := value.(map[string]any); ok {
				delete(m, "timeout") // which may ask for minutes
				if g.r.IntN(8) == 0 {
					m[g.odd()] = g.odd()
				}
			}
			body, _ = json.Marshal(value)
		}
		if g.r.IntN(10) == 0 {
			body = body[:g.r.IntN(len(body)+1)]
		}
	}
	address := g.i.HTTP + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(g.t.Context(), op.method, address, bytes.NewReader(body))
	if err != nil {
		return // no client sends that
	}
	req.Header = headers
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatalf("request %d, %s %s: %v", n, op.method, address, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if g.answers[res.StatusCode]++; res.StatusCode < http.StatusMultipleChoices {
		g.succeeded[op.at] = true
	}
	what := fmt.Sprintf("request %d, %s %s %s: %d %s", n, op.method, address, body, res.StatusCode, text)
	if err != nil {
		g.t.Fatalf("%s: %v", what, err)
	}
	if res.StatusCode >= http.StatusInternalServerError && res.StatusCode != http.StatusNotImplemented {
		g.t.Errorf("%s", what)
	}
	if strings.Contains(string(text), "live in "+secret) || strings.Contains(string(text), "lives in "+secret) {
		g.t.Errorf("another project is read: %s", what)
	}
	if err := g.fits(op, res, text); err != nil {
		g.t.Errorf("%s: %v", what, err)
	}
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}

// fits compares an answer with its description.
func (g *generator) fits(op operation, res *http.Response, text []byte) error {
	responses := op.spec["responses"].(map[string]any)
	status := strconv.Itoa(res.StatusCode)
	if _, ok := responses[status]; !ok {
		status = "default"
	}
	response, ok := responses[status].(map[string]any)
	if !ok {
		return fmt.Errorf("the status is not described")
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if len(text) == 0 || !strings.HasSuffix(kind, "json") || kind == "application/x-ndjson" {
		return nil
	}
	content, _ := response["content"].(map[string]any)
	if _, ok := content[kind]; !ok {
		return fmt.Errorf("the type %q is not described", kind)
	}
	schema, err := g.compiler.Compile("openapi.json#" + op.at + "/responses/" + status + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema")
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// value is one of a schema, or sometimes of another.
func (g *generator) value(schema map[string]any, name string, depth int) any {
	if g.r.IntN(12) == 0 || depth > 6 {
		return g.odd()
	}
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/components/schemas/")
		schemas := g.document["components"].(map[string]any)["schemas"].(map[string]any)
		return g.value(schemas[name].(map[string]any), name, depth+1)
	}
	if forms := list(schema["oneOf"]); len(forms) > 0 {
		return g.value(forms[g.r.IntN(len(forms))].(map[string]any), name, depth+1)
	}
	if of := list(schema["enum"]); len(of) > 0 {
		return of[g.r.IntN(len(of))]
	}
	kind, _ := schema["type"].(string)
	if kinds := list(schema["type"]); len(kinds) > 0 {
		kind, _ = kinds[0].(string)
	}
	switch kind {
	case "object":
		out := map[string]any{}
		required := list(schema["required"])
		for member, of := range ordered(asObject(schema["properties"])) {
			if slices.Contains(required, any(member)) || g.r.IntN(2) == 0 {
				out[member] = g.value(of.(map[string]any), member, depth+1)
			}
		}
		return out
	case "array":
		out := []any{}
		for range g.r.IntN(3) {
			out = append(out, g.value(schema["items"].(map[string]any), name, depth+1))
		}
		return out
	case "boolean":
		return g.r.IntN(2) == 0
	case "integer":
		return []int{0, 1, 2, 10, -1, 1 << 40}[g.r.IntN(6)]
	case "number":
		return []float64{0, 0.5, 1, -1, 1e300}[g.r.IntN(5)]
	}
	return g.member(name)
}

// ordered yields members by name, so that a seed makes the same requests again.
func ordered(m map[string]any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func asObject(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}
