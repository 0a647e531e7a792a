package decidetest_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/decide/decidetest"
	"palimpsest/internal/decide/deterministic"
	decidemodel "palimpsest/internal/decide/model"
	extractmodel "palimpsest/internal/extract/model"
	"palimpsest/internal/llm"
	"palimpsest/internal/llm/llmtest"
	"palimpsest/internal/llm/openai"
	"palimpsest/pkg/events"
)

// label is a fact that a model finds in a message: its predicate and object, and what
// the fact reads. The object of several values is marked with "+", one that does not
// hold any more with "-".
type label struct{ predicate, object, text string }

// wording is one way to state a row: the message before, and the message that changes it.
type wording struct{ known, said string }

// TestWordings holds the table of behaviour, which has cases 14 to 18 of the tests that
// clients bring, with three wordings of each row and on both paths: rule packs with the
// steps, and a model, which is a local server that answers from labels, with its advice.
func TestWordings(t *testing.T) {
	t.Parallel()
	for _, row := range wordings {
		for n, w := range row.wordings {
			for _, path := range []string{"rules", "model"} {
				t.Run(fmt.Sprintf("%s/%d/%s", row.name, n+1, path), func(t *testing.T) {
					t.Parallel()
					k := newTalk(t)
					if path == "model" {
						k = newModelTalk(t, row.labels, row.advice)
					}
					if w.known != "" {
						if got := k.turn(events.RoleUser, w.known); !slices.Contains(got, "add") {
							t.Fatalf("%q gives %v, want an add", w.known, got)
						}
					}
					got := k.turn(events.RoleUser, w.said)
					if !slices.ContainsFunc(row.kinds, func(kinds string) bool { return strings.Join(got, " ") == kinds }) {
						t.Errorf("%q gives %q, want one of %q: %q", w.said, got, row.kinds, k.texts())
					}
					for _, words := range row.holds {
						if !k.holds(strings.Fields(words)...) {
							t.Errorf("no valid fact holds %q: %q", words, k.texts())
						}
					}
					for _, words := range row.not {
						if k.holds(words) {
							t.Errorf("a valid fact holds %q: %q", words, k.texts())
						}
					}
					if n := len(k.texts()); row.facts >= 0 && n != row.facts {
						t.Errorf("%d facts, want %d: %q", n, row.facts, k.texts())
					}
				})
			}
		}
	}
}

var wordings = []struct {
	name     string
	wordings []wording
	labels   map[string][]label // by a part of the message
	advice   string             // of the model where a fact is known: UPDATE, DELETE or NONE
	kinds    []string           // of the deltas of the last message
	holds    []string           // words that one valid fact has
	not      []string           // phrases that none has
	facts    int                // -1 for any number
}{
	{
		name:     "a name is added",
		wordings: []wording{{said: "My name is Bo"}, {said: "hi, i'm called Bo"}, {said: "You can call me Bo, that's my name."}},
		labels:   map[string][]label{"Bo": {{"name", "Bo", "The user's name is Bo."}}},
		kinds:    []string{"add", "add add"}, holds: []string{"Bo"}, facts: -1,
	},
	{
		name:     "a greeting gives nothing",
		wordings: []wording{{said: "hello"}, {said: "Good morning!"}, {said: "hey, how are you?"}},
		kinds:    []string{""},
	},
	{
		name: "case 14: what is known already changes nothing",
		wordings: []wording{
			{"I like Python", "I like Python"}, {"I like Python", "i like python!"}, {"I really like Python.", "I like Python."},
		},
		labels: map[string][]label{"ython": {{"likes", "+Python", "The user likes Python."}}},
		kinds:  []string{"noop"}, holds: []string{"Python"}, facts: 1,
	},
	{
		name: "case 15: a contradiction updates",
		wordings: []wording{
			{"I live in Oslo", "I moved to Bergen last week"}, {"I live in Oslo.", "I live in Bergen now."}, {"i live in Oslo", "We have moved to Bergen"},
		},
		labels: map[string][]label{
			"Oslo": {{"lives_in", "Oslo", "The user lives in Oslo."}}, "Bergen": {{"lives_in", "Bergen", "The user lives in Bergen."}},
		},
		advice: "UPDATE", kinds: []string{"update"}, holds: []string{"lives Bergen"}, not: []string{"lives in Oslo"}, facts: 1,
	},
	{
		name: "case 16: a refinement is merged",
		wordings: []wording{
			{"I work in tech", "I work at Fenwick as a senior engineer"}, {"I work in tech.", "I'm a senior engineer at Fenwick."},
			{"i work in tech", "I work as a senior engineer at Fenwick"},
		},
		labels: map[string][]label{
			"in tech": {{"work", "in tech", "The user works in tech."}},
			"Fenwick": {{"work", "as a senior engineer at Fenwick", "The user works as a senior engineer at Fenwick."}},
		},
		advice: "UPDATE", kinds: []string{"update"}, holds: []string{"senior engineer Fenwick"}, facts: 1,
	},
	{
		name: "case 17: a negation ends a fact",
		wordings: []wording{
			{"I'm vegetarian", "I started eating meat again"}, {"I am a vegetarian.", "I'm no longer vegetarian."}, {"im vegetarian", "I eat meat again"},
		},
		labels: map[string][]label{
			"eat":                  {{"diet", "-vegetarian", "The user is no longer vegetarian."}},
			"no longer vegetarian": {{"diet", "-vegetarian", "The user is no longer vegetarian."}},
			"m vegetarian":         {{"diet", "vegetarian", "The user is vegetarian."}},
			"a vegetarian":         {{"diet", "vegetarian", "The user is vegetarian."}},
		},
		advice: "DELETE", kinds: []string{"delete", "update", "delete add", "add delete"}, not: []string{"vegetarian"}, facts: -1,
	},
	{
		name: "case 18: several facts of one message",
		wordings: []wording{
			{said: "My name is Bo and I live in Porto."}, {said: "I live in Porto. My name is Bo."}, {said: "I'm called Bo, and I live in Porto"},
		},
		labels: map[string][]label{"Bo": {{"name", "Bo", "The user's name is Bo."}, {"lives_in", "Porto", "The user lives in Porto."}}},
		kinds:  []string{"add add"}, holds: []string{"Bo", "Porto"}, facts: 2,
	},
	{
		name: "a question is no fact",
		wordings: []wording{
			{said: "Do you think I should move to Berlin?"}, {said: "Should I move to Berlin?"}, {said: "is Berlin a good place to live?"},
		},
		kinds: []string{""}, not: []string{"Berlin"},
	},
	{
		name: "another person's taste is theirs",
		wordings: []wording{
			{said: "My brother Tom hates cilantro"}, {said: "my brother Tom really hates cilantro"}, {said: "My brother Tom can't stand cilantro."},
		},
		labels: map[string][]label{"cilantro": {{"tom|dislikes", "+cilantro", "Tom, the user's brother, hates cilantro."}}},
		kinds:  []string{"add", "add add"}, holds: []string{"tom cilantro"}, not: []string{"The user dislikes", "The user hates"}, facts: -1,
	},
	{
		name: "a new number replaces the old",
		wordings: []wording{
			{"my phone number ends in 41", "my new number ends in 42"}, {"My phone number ends in 41.", "My phone number ends in 42 now."},
			{"my phone number ends in 41", "My phone number now ends in 42"},
		},
		labels: map[string][]label{
			"41": {{"phone", "ends in 41", "The user's phone number ends in 41."}}, "42": {{"phone", "ends in 42", "The user's phone number ends in 42."}},
		},
		advice: "UPDATE", kinds: []string{"update"}, holds: []string{"42"}, not: []string{"41"}, facts: 1,
	},
}

// line is a message of the user as the prompt of the extraction shows it, statement a
// candidate as that of the decision does, with the facts that are known of it.
var (
	line      = regexp.MustCompile(`(?m)^(\d+)\. \[[^\]]*\] user: (.*)$`)
	statement = regexp.MustCompile(`(?m)^Statement (\d+) [^\n]*\n[^\n]*\n(Known:\n- k1)?`)
)

// newModelTalk is a talk that a model reads and advises on.
func newModelTalk(t *testing.T, labels map[string][]label, advice string) *talk {
	t.Helper()
	server := llmtest.Serve(t, llmtest.OpenAI, func(asked llmtest.Asked) llmtest.Answer {
		if asked.Name == "operations" {
			return llmtest.Answer{Text: advised(asked.User, advice)}
		}
		return llmtest.Answer{Text: labelled(t, asked.User, labels)}
	})
	provider, err := openai.New(openai.Config{BaseURL: server.URL, Model: "m-1", Key: "k", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	model, err := llm.New(provider, "")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := packs()
	if err != nil {
		t.Fatal(err)
	}
	return &talk{
		Memory: decidetest.NewMemory(speaker.Fact()), t: t, extractor: extractmodel.New(governed(model), rules, extractmodel.Config{}),
		decider: decidemodel.New(governed(model), deterministic.New(), decidemodel.Config{}),
	}
}

// governed reads replies, as only a governor does.
func governed(m llm.Model) llm.Model { return llm.Govern(m, llm.Limits{}, nil, time.Now) }

// labelled answers with the facts of each message, by the longest label in it.
func labelled(t *testing.T, prompt string, labels map[string][]label) string {
	type fact map[string]any
	facts := []fact{}
	for _, m := range line.FindAllStringSubmatch(prompt, -1) {
		best := ""
		for part := range labels {
			if strings.Contains(m[2], part) && len(part) > len(best) {
				best = part
			}
		}
		for _, l := range labels[best] {
			subject, predicate, about := strings.Cut(l.predicate, "|")
			if !about {
				subject, predicate = "user", l.predicate
			}
			object, many := strings.CutPrefix(l.object, "+")
			object, negated := strings.CutPrefix(object, "-")
			facts = append(facts, fact{
				"line": json.Number(m[1]), "quote": m[2], "kind": "semantic", "category": "biography", "subject": subject, "predicate": predicate,
				"object": object, "text": l.text, "cardinality": map[bool]string{true: "many", false: "one"}[many], "explicit": true, "hedged": false,
				"transient": false, "sensitive": "none", "negated": negated, "since": "", "until": "", "confidence": 0.9, "entities": []any{},
			})
		}
	}
	raw, err := json.Marshal(map[string]any{"facts": facts})
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}

// advised answers with the advice on each statement of which a fact is known.
func advised(prompt, advice string) string {
	var ops []string
	for _, m := range statement.FindAllStringSubmatch(prompt, -1) {
		op := func(operation, target string) {
			ops = append(ops, fmt.Sprintf(`{"candidate":%s,"operation":%q,"target":%q,"text":"","reason":"label"}`, m[1], operation, target))
		}
		if m[2] == "" || advice == "" {
			op("ADD", "")
			continue
		}
		op(advice, "k1")
		if advice == "DELETE" {
			op("ADD", "")
		}
	}
	return `{"operations":[` + strings.Join(ops, ",") + `]}`
}
