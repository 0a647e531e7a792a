package scope_test

import (
	"testing"

	"palimpsest/pkg/scope"
)

func TestSelectorFact(t *testing.T) {
	t.Parallel()
	visitor := scope.Scope{Project: "p", Agent: "a", Session: "s"}
	for _, s := range []scope.Scope{{Project: "p", User: "u"}, {Project: "p", User: "u", Agent: "a"}, visitor} {
		if got, ok := scope.Exactly(s).Fact(); !ok || got != s {
			t.Errorf("%v: %v, %v", s, got, ok)
		}
	}
	for name, sel := range map[string]scope.Selector{
		"several":         scope.Under(scope.Scope{Project: "p", User: "u"}),
		"a session of it": scope.Exactly(scope.Scope{Project: "p", User: "u", Session: "s"}),
		"no project":      scope.Exactly(scope.Scope{User: "u"}),
	} {
		if got, ok := sel.Fact(); ok {
			t.Errorf("%s is the fact scope %v", name, got)
		}
	}
}
