package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"palimpsest/internal/llm/llmtest"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// hobby finds the statement of which only the models of these tests make a fact.
var hobby = regexp.MustCompile(`(?m)^(\d+)\. \[[^\]]*\] user: (My heart beats for (\w+)\.)$`)

// understand answers like a model that extracts hobbies.
func understand(asked llmtest.Asked) llmtest.Answer {
	if asked.Name == "operations" {
		return llmtest.Answer{Text: `{"operations":[]}`, Input: 300, Output: 10}
	}
	words := "The hobby of the user is %s."
	if strings.Contains(asked.System, customPrompt) {
		words = "HOBBY: %s"
	}
	var facts []string
	for _, m := range hobby.FindAllStringSubmatch(asked.User, -1) {
		facts = append(facts, fmt.Sprintf(`{"line":%s,"quote":%q,"kind":"semantic","category":"preference","subject":"user","predicate":"hobby","object":%q,`+
			`"text":%q,"cardinality":"many","explicit":true,"hedged":false,"transient":false,"sensitive":"none","negated":false,`+
			`"since":"","until":"","confidence":0.9,"entities":[]}`, m[1], m[2], m[3], fmt.Sprintf(words, m[3])))
	}
	return llmtest.Answer{Text: `{"facts":[` + strings.Join(facts, ",") + `]}`, Input: 1000, Output: 50}
}

const customPrompt = "Write each hobby in capital letters."

// withModel starts a Palimpsest that extracts with a model of that provider.
func withModel(t *testing.T, provider string, wire llmtest.Wire, script func(llmtest.Asked) llmtest.Answer) (*process, *caller) {
	t.Helper()
	s := llmtest.Serve(t, wire, script)
	i := start(t, t.TempDir(), "--config", settings(t, fmt.Sprintf(
		"rules:\n  - {id: causes, every: 1000, extractor: causes}\nllm:\n  provider: %s\n  base_url: %s\n  model: m-1\n  keys:\n    openai: k\n    anthropic: k\n    gemini: k\n"+
			"  limits:\n    backoff: 20ms\n    backoff_most: 200ms\n", provider, s.URL)))
	return i, &caller{T: t, at: i.HTTP, project: "default"}
}

// endSession ends bob's session, so that the model reads it.
func (c *caller) endSession(i *process) {
	c.Helper()
	if status, answer := i.in(c.T).ask(http.MethodPost, "/v1/sessions/s/end", `{"user":"bob"}`); status >= 300 {
		c.Fatalf("end the session: %d %v", status, answer)
	}
}

// shows waits until bob has a memory with words.
func (c *caller) shows(words string) {
	c.Helper()
	eventually(c, "a memory with "+words, func() error {
		if got := c.all(bob); !says(got, words) {
			return fmt.Errorf("%v", memories(got))
		}
		return nil
	})
}

var inSession = object{"user_id": "bob", "run_id": "s"}

// TestCase13: a reset leaves no memory and no history, at once and after the erasure. It
// needs a setting.
func TestCase13(t *testing.T) {
	t.Parallel()
	for name, memory := range eachMemory {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory(t)
			i := start(t, t.TempDir(), "--config", settings(t, store+"query: {allow_reset: true}\n"))
			c := &caller{T: t, at: i.HTTP, project: "default"}
			id, _ := c.one("ADD", bob, "My name is Bob")["id"].(string)
			c.one("ADD", alice, "My name is Alice")
			c.ok(http.MethodPost, "/v1/reset/", nil, nil)
			eventually(t, "the erasure", func() error {
				status, _, err := i.tries(http.MethodGet, "/v1/facts/"+id+"/history?project=default")
				if err != nil || status != http.StatusNotFound {
					return fmt.Errorf("history: %d, %w", status, err)
				}
				return nil
			})
			for _, who := range []object{bob, alice} {
				if got := c.all(who); len(got) > 0 {
					t.Errorf("%v", memories(got))
				}
			}
		})
	}
	i := start(t, t.TempDir())
	c := &caller{T: t, at: i.HTTP, project: "default"}
	c.refused(http.StatusForbidden, "not allowed", http.MethodPost, "/v1/reset/", nil, nil)
}

// tries sends a request to a server that may be away.
func (i *process) tries(method, path string) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(i.t.Context(), method, i.HTTP+path, nil)
	if err != nil {
		return 0, nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// TestCase36: while the model is down an add is accepted, and the memory that the model
// finds appears when it is back.
func TestCase36(t *testing.T) {
	t.Parallel()
	var back atomic.Bool
	var refused atomic.Int32
	i, c := withModel(t, "openai", llmtest.OpenAI, func(asked llmtest.Asked) llmtest.Answer {
		if !back.Load() {
			refused.Add(1)
			return llmtest.Answer{Status: http.StatusInternalServerError, Body: `{"error":{"message":"down"}}`}
		}
		return understand(asked)
	})
	status, answer := i.ask(http.MethodPost, "/v1/episodes", `{"user":"bob","session":"s","messages":"My heart beats for chess."}`)
	if status != http.StatusAccepted {
		t.Fatalf("%d %v", status, answer)
	}
	c.endSession(i)
	eventually(t, "the model is asked", func() error {
		if refused.Load() == 0 {
			return fmt.Errorf("no call yet")
		}
		return nil
	})
	if got := c.all(bob); says(got, "chess") {
		t.Errorf("%v", memories(got))
	}
	back.Store(true)
	c.shows("The hobby of the user is chess.")
}

// TestCase37: a failing embedder loses no memory. All are found by their words at
// once, and by their vectors when it works again.
func TestCase37(t *testing.T) {
	t.Parallel()
	vectors := serveConcepts(t)
	i := start(t, t.TempDir(), "--config", settings(t, vectors.settings()))
	c := &caller{T: t, at: i.HTTP, project: "default", vectors: vectors}
	vectors.fail(true)
	c.likes(bob)
	if got := c.all(bob); len(got) != 3 {
		t.Errorf("%v", memories(got))
	}
	if got := c.search(bob, "hiking", nil); !says(got, "hiking") {
		t.Errorf("by words: %v", memories(got))
	}
	vectors.fail(false)
	eventually(t, "the vectors", func() error {
		if got := c.search(bob, "programming languages", object{"threshold": 0.5}); !says(got, "Python") {
			return fmt.Errorf("%v", memories(got))
		}
		return nil
	})
}

// TestCase39: the prompt of an add replaces that of the extraction.
func TestCase39(t *testing.T) {
	t.Parallel()
	_, c := withModel(t, "openai", llmtest.OpenAI, understand)
	got := c.add(object{"user_id": "bob", "prompt": customPrompt}, "My heart beats for chess.")
	if !says(got, "HOBBY: chess") {
		t.Errorf("%v", memories(got))
	}
}

// TestCase40: models of three providers extract.
func TestCase40(t *testing.T) {
	t.Parallel()
	for name, wire := range map[string]llmtest.Wire{"openai": llmtest.OpenAI, "anthropic": llmtest.Anthropic, "gemini": llmtest.Gemini} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, c := withModel(t, name, wire, understand)
			c.add(inSession, "My heart beats for chess.")
			c.endSession(i)
			c.shows("The hobby of the user is chess.")
			c.spent(i, "rule,model,facts,calls,input_tokens,output_tokens,dollars", "turn,m-1,1,1,1000,50,")
		})
	}
}

// spent waits until the report cost begins with columns and has a row that begins with
// row: what the model charged, and the facts that are kept of it.
func (c *caller) spent(i *process, columns, row string) {
	c.Helper()
	eventually(c, "the cost of the model", func() error {
		reply, err := http.Get(i.HTTP + "/v1/reports/cost?all=true&format=csv")
		if err != nil {
			return err
		}
		defer reply.Body.Close()
		table, err := io.ReadAll(reply.Body)
		if err == nil && (!strings.HasPrefix(string(table), columns) || !strings.Contains(string(table), "\n"+row)) {
			err = fmt.Errorf("the report is %s", table)
		}
		return err
	})
}

// TestP3RequestsAreReadOnceInTheirTurn: a message with a prompt is read by the model at
// once, after the messages before it and before those after it, and by no other rule.
func TestP3RequestsAreReadOnceInTheirTurn(t *testing.T) {
	t.Parallel()
	var read atomic.Int32
	p, _ := withModel(t, "openai", llmtest.OpenAI, func(asked llmtest.Asked) llmtest.Answer {
		if asked.Name != "operations" && hobby.MatchString(asked.User) {
			read.Add(1)
		}
		return understand(asked)
	})
	i := p.in(t)
	who := i.person("bob")
	i.say(who, "I live in Oslo.")
	w, err := i.api.Record(t.Context(), api.Record{
		Scope: api.ScopeOf(who), Messages: api.Messages{{Content: "My heart beats for chess."}}, Prompt: customPrompt, Wait: true,
	}, "")
	if err != nil || w.Status != "done" || len(w.Results) != 1 || w.Results[0].Memory != "HOBBY: chess" {
		t.Fatalf("%+v, %v", w, err)
	}
	i.say(who, "I moved to Rome.")
	i.settled(of(who), 3)
	if _, err := i.api.RunRule(t.Context(), "sleep", api.RunRule{Scope: api.ScopeOf(who), Wait: true}); err != nil {
		t.Fatal(err)
	}
	i.settledBy("sleep", of(who), 3)
	if n := read.Load(); n != 1 {
		t.Errorf("the model read the message %d times", n)
	}
	at := uint64(0)
	for _, e := range i.effects(of(who)) {
		if e.Rule != "turn" {
			continue
		}
		if e.Range.From != at {
			t.Errorf("an effect over %v behind %d", e.Range, at)
		}
		at = e.Range.To
		asked := e.Range.From < 2 && e.Range.To >= 2
		if own := e.As == "add" && e.Cause == events.CauseRequest && e.Range.Len() == 1; asked != own {
			t.Errorf("the effect over %v is of %q, cause %s", e.Range, e.As, e.Cause)
		}
	}
	if a := i.account("turn", of(who)); a.Consolidated != 3 || a.Skipped != 0 {
		t.Errorf("account %+v", a)
	}
}

// TestModelsSummarise: a model summarises entities in one call, which is paid once. The
// rule packs wrote the facts.
func TestModelsSummarise(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	i, c := withModel(t, "openai", llmtest.OpenAI, func(asked llmtest.Asked) llmtest.Answer {
		if asked.Name != "entities" {
			return understand(asked)
		}
		calls.Add(1)
		return llmtest.Answer{Text: `{"entities":[{"number":1,"summary":"Ida and Ben work at Fenwick Labs with the user.","type":"organization"}]}`, Input: 200, Output: 20}
	})
	on := i.in(t)
	who := on.person("bob")
	on.say(who, "I work at Fenwick Labs.", "My sister Ida works at Fenwick Labs.", "My friend Ben works at Fenwick Labs.")
	on.settled(of(who), 3)
	on.runTwice(who, "maintenance")
	status, answer := i.ask(http.MethodGet, "/v1/entities/Fenwick%20Labs?user="+who.User, "")
	entity, _ := answer.(object)
	if summary, _ := entity["summary"].(string); status != http.StatusOK || summary != "Ida and Ben work at Fenwick Labs with the user." {
		t.Errorf("%d %v", status, answer)
	}
	if n := calls.Load(); n != 1 {
		t.Errorf("%d calls", n)
	}
	c.spent(i, "rule,model,facts,calls,input_tokens,output_tokens,dollars", "maintenance,m-1,0,1,200,20,")
}

// TestModelsFindCauses: a rule relates messages to their causes by edges, which a second
// run and an export keep.
func TestModelsFindCauses(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	i, _ := withModel(t, "openai", llmtest.OpenAI, func(asked llmtest.Asked) llmtest.Answer {
		if asked.Name != "causes" {
			return understand(asked)
		}
		calls.Add(1)
		return llmtest.Answer{Text: `{"causes":[{"effect":2,"confidence":0.9},{"effect":3,"confidence":0.4}]}`, Input: 100, Output: 10}
	})
	on := i.in(t)
	who := on.person("bob")
	on.say(who, "I lost my job at the mill.", "I moved back to my parents.", "It is warm today.")
	on.settled(of(who), 3)
	on.runTwice(who, "causes")
	status, answer := i.ask(http.MethodGet, "/v1/stats?user="+who.User, "")
	stats, _ := answer.(object)
	if edges, _ := stats["edge_types"].(object); status != http.StatusOK || edges["causal"] != 1.0 || calls.Load() != 1 {
		t.Errorf("%d calls, %d %v", calls.Load(), status, answer)
	}
}

// runTwice runs a rule for a user, and waits for each run.
func (i *instance) runTwice(who scope.Scope, rule string) {
	i.t.Helper()
	body := fmt.Sprintf(`{"user":%q,"agent":%q,"wait":true}`, who.User, who.Agent)
	for range 2 {
		if status, answer := i.ask(http.MethodPost, "/v1/rules/"+rule+"/run", body); status != http.StatusOK {
			i.t.Fatalf("%d %v", status, answer)
		}
	}
}
