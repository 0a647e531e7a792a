package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// hostile identifiers mean something to a path, a subject, a pattern, a query
// or a fold somewhere, or are each other's look-alikes.
var hostile = []string{
	"a/../b", "..", ".", "/", "*", ">", "%", "_", "%25", "%2F", "a.b", "a b", " ", "'; DROP TABLE facts; --", `"`, `\`,
	"alice", "Alice", "ALICE", "alice ", "aliceX", "caf\u00e9", "cafe\u0301", "\U0001F984", "\u202enimda", "ß", "ss", "İ", "i", "@{x}", "-", "{}",
	"null", "undefined", strings.Repeat("é", 128),
}

// told is one hostile owner and what only they said.
type told struct {
	who  scope.Scope
	sel  scope.Selector
	word string
}

// isolated has every hostile identifier as a user and as a project or an
// anonymous session, half over NATS and half over HTTP: each read gives its own and
// nothing else.
func isolated(t *testing.T, i *instance) {
	var all []told
	for n, id := range hostile {
		other := scope.Scope{Project: i.tenant, Agent: "assistant", Session: id} // anonymous
		if n%2 == 0 {
			other = scope.Scope{Project: id, User: "alice", Agent: "assistant", Session: "s1"}
		}
		for _, who := range []scope.Scope{{Project: i.tenant, User: id, Agent: "assistant", Session: "s1"}, other} {
			x := told{who: who, word: fmt.Sprintf("quokka%dx%d", n, len(all))}
			x.sel = scope.Under(who.Fact())
			if who.User == "" {
				x.sel = scope.Exactly(who)
			}
			i.tell(x, len(all)%2 == 0)
			all = append(all, x)
		}
	}
	for _, x := range all {
		i.settled(x.sel, 1)
	}
	for _, x := range all {
		i.alone(x)
	}
	if letters := i.buried(0); len(letters) > 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

func (i *instance) tell(x told, overNATS bool) {
	i.t.Helper()
	content := "I like " + x.word
	if overNATS {
		i.say(x.who, turn(content))
		return
	}
	body := api.Record{Scope: api.ScopeOf(x.who), Messages: api.Messages{{Content: content}}}
	if _, err := i.project(x.sel).Record(i.t.Context(), body, ""); err != nil {
		i.t.Fatalf("%s: %v", x.who, err)
	}
}

// alone checks that x reads all messages of x and no others.
func (i *instance) alone(x told) {
	i.t.Helper()
	only := func(read string, got ...string) {
		i.t.Helper()
		if len(got) != 1 || !strings.Contains(got[0], x.word) {
			i.t.Errorf("%s of %s: %q", read, x.who, got)
		}
	}
	exactly := scope.Exactly(x.who)
	only("recent", contents(i.recent(exactly))...)
	facts := i.facts(x.sel)
	only("facts", texts(facts)...)
	for _, f := range facts {
		if got := f.In(x.who.Project); got != x.who.Fact() {
			i.t.Errorf("%s: the fact is filed under %s", x.who, got)
		}
	}
	found, err := i.project(x.sel).Search(i.t.Context(), api.Search{
		Selector: api.Selector{User: exactly.User, Agent: exactly.Agent, Session: exactly.Session}, Text: "who likes quokka " + x.word, Limit: 1000,
	})
	if err != nil {
		i.t.Fatalf("search of %s: %v", x.who, err)
	}
	hits := map[string][]string{}
	for _, h := range found.Results {
		hits[h.Type] = append(hits[h.Type], h.Text)
	}
	only("search for facts", hits["fact"]...)
	only("search for episodes", hits["episode"]...)
	var exported []string
	for line := range strings.Lines(i.export(x.sel, false)) {
		var row struct{ Kind, Project, Scope, Text string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			i.t.Fatal(err)
		}
		if row.Project != x.who.Project || row.Scope != x.who.Fact().Key() {
			i.t.Errorf("export of %s: %s", x.who, line)
		}
		if row.Kind == "fact" {
			exported = append(exported, row.Text)
		}
	}
	only("export", exported...)
	for _, e := range i.effects(x.sel) {
		if e.Scope != x.who.Fact() {
			i.t.Errorf("audit of %s: %s", x.who, e.Scope)
		}
	}
}

// anotherProjectsIDIsUnknown asks for an existing id from another project.
func anotherProjectsIDIsUnknown(t *testing.T, i *instance) {
	ann := i.person("ann")
	i.say(ann, "I like Python")
	i.settled(of(ann), 1)
	f := wantOne(t, i.facts(of(ann)), "Python")
	other := i.project(everything("other than " + i.tenant))
	for name, call := range map[string]func() error{
		"fact":    func() error { _, err := other.Fact(t.Context(), f.ID, 0); return err },
		"history": func() error { _, err := other.History(t.Context(), f.ID); return err },
		"explain": func() error { _, err := other.Explain(t.Context(), f.ID); return err },
		"correct": func() error { _, err := other.Correct(t.Context(), f.ID, 0, api.Correct{Text: "x"}); return err },
		"delete":  func() error { _, err := other.Delete(t.Context(), f.ID, 0); return err },
		"confirm": func() error { _, err := other.Confirm(t.Context(), f.ID, 0); return err },
	} {
		wantProblem(t, name, call(), 404, api.CodeNotFound)
	}
	wantOne(t, i.facts(of(ann)), "Python")
}
