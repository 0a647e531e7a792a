package scope

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSelector(t *testing.T) {
	t.Parallel()
	id := func(s string) *string { return &s }
	ada := Scope{"p", "ada", "a", "s"}
	for name, tc := range map[string]struct {
		sel  Selector
		s    Scope
		want bool
	}{
		"nil matches any":            {Selector{Project: "p"}, ada, true},
		"nil matches absent":         {Selector{Project: "p"}, Scope{Project: "p", Agent: "a"}, true},
		"empty matches absent":       {Selector{Project: "p", User: id("")}, Scope{Project: "p", Agent: "a"}, true},
		"empty matches nothing else": {Selector{Project: "p", User: id("")}, ada, false},
		"value matches itself":       {Selector{Project: "p", User: id("ada")}, ada, true},
		"value keeps case":           {Selector{Project: "p", User: id("Ada")}, ada, false},
		"value is no prefix":         {Selector{Project: "p", User: id("ad")}, ada, false},
		"value is no pattern":        {Selector{Project: "p", User: id("*")}, ada, false},
		"value keeps form":           {Selector{Project: "p", User: id("é")}, Scope{Project: "p", User: "e\u0301"}, false},
		"value is not absent":        {Selector{Project: "p", User: id("ada")}, Scope{Project: "p", Agent: "a"}, false},
		"another project":            {Selector{Project: "q"}, ada, false},
		"all levels count":           {Selector{Project: "p", User: id("ada"), Session: id("t")}, ada, false},
	} {
		if got := tc.sel.Match(tc.s); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSelectorsOfAScope(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := scopes().Draw(t, "a"), scopes().Draw(t, "b")
		if rapid.Bool().Draw(t, "one project") {
			b.Project = a.Project
		}
		if Exactly(a).Match(b) != (a == b) || !Exactly(a).Match(a) {
			t.Fatalf("%s of %#v on %#v", Exactly(a), a, b)
		}
		if Under(a).Match(b) != (a.Project == b.Project && ancestor(a, b)) || !Under(a).Match(a) {
			t.Fatalf("%s of %#v on %#v", Under(a), a, b)
		}
		if err := Exactly(a).Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSelectorValidate(t *testing.T) {
	t.Parallel()
	bad, long, none := "a\x00", strings.Repeat("a", 257), ""
	for name, sel := range map[string]Selector{
		"no project":        {},
		"control character": {Project: "p", User: &bad},
		"long":              {Project: "p", Session: &long},
		"bad project":       {Project: bad},
	} {
		if sel.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := (Selector{Project: "p", Agent: &none}).Validate(); err != nil {
		t.Error(err)
	}
	user := "Ada"
	if got := (Selector{Project: "p", User: &user, Agent: &none}).String(); got != "p/%41da/_/*" {
		t.Error(got)
	}
}
