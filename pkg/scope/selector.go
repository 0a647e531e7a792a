package scope

import "fmt"

// Selector is a widening read: within one project, a level that is nil matches
// any value, absent included; one that points to "" matches absent only; any
// other matches that identifier byte for byte.
type Selector struct {
	Project string  `json:"project"`
	User    *string `json:"user,omitempty"`
	Agent   *string `json:"agent,omitempty"`
	Session *string `json:"session,omitempty"`
	// All says that no level is named on purpose. It does not change what
	// matches. The HTTP API refuses a selector that names no level without it.
	All bool `json:"all,omitempty"`
}

// Exactly returns the selector that matches s and nothing else.
func Exactly(s Scope) Selector {
	return Selector{Project: s.Project, User: &s.User, Agent: &s.Agent, Session: &s.Session}
}

// Fact is the one fact scope that the selector matches; ok is false where it
// matches several or none.
func (sel Selector) Fact() (fact Scope, ok bool) {
	if sel.User == nil || sel.Agent == nil || sel.Session == nil {
		return Scope{}, false
	}
	fact = Scope{Project: sel.Project, User: *sel.User, Agent: *sel.Agent, Session: *sel.Session}
	return fact, fact.IsFact() && fact.Validate() == nil
}

// Under returns the selector of everything at or below s: levels that s names
// must match, those it leaves absent match anything.
func Under(s Scope) Selector {
	sel := Selector{Project: s.Project}
	for _, l := range []struct {
		id   string
		into **string
	}{{s.User, &sel.User}, {s.Agent, &sel.Agent}, {s.Session, &sel.Session}} {
		if l.id != "" {
			id := l.id
			*l.into = &id
		}
	}
	return sel
}

// Match reports whether s is within the selector.
func (sel Selector) Match(s Scope) bool {
	return sel.Project == s.Project && matchLevel(sel.User, s.User) &&
		matchLevel(sel.Agent, s.Agent) && matchLevel(sel.Session, s.Session)
}

func matchLevel(want *string, got string) bool { return want == nil || *want == got }

// Validate refuses a selector without a project and identifiers that
// [Scope.Validate] would refuse. The error is an [*Error].
func (sel Selector) Validate() error {
	if sel.Project == "" {
		return &Error{Level: "project", Reason: "is required"}
	}
	for _, l := range []struct {
		name string
		id   *string
	}{{"project", &sel.Project}, {"user", sel.User}, {"agent", sel.Agent}, {"session", sel.Session}} {
		if l.id == nil || *l.id == "" {
			continue
		}
		if err := checkIdentifier(l.name, *l.id); err != nil {
			return err
		}
	}
	return nil
}

// String is the selector for people and logs, "*" standing for any value.
func (sel Selector) String() string {
	show := func(id *string) string {
		switch {
		case id == nil:
			return "*"
		case *id == "":
			return absent
		}
		return Encode(*id)
	}
	return fmt.Sprintf("%s/%s/%s/%s", Encode(sel.Project), show(sel.User), show(sel.Agent), show(sel.Session))
}
