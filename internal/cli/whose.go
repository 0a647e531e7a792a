package cli

import (
	"errors"

	"palimpsest/internal/app"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// Whose narrows a read; a flag that is left out widens it.
type Whose struct {
	User    *string `help:"User; any unless given, \"\" for none." placeholder:"ID"`
	Agent   *string `help:"Agent; any unless given, \"\" for none." placeholder:"ID"`
	Session *string `help:"Session; any unless given, \"\" for none." placeholder:"ID"`

	AllUsers bool `help:"Read the whole project; needed where none of the three is named."`
}

// Selector returns the levels that the flags name. It refuses flags that the
// server would refuse, in terms of flags.
func (w Whose) Selector(project string) (scope.Selector, error) {
	sel := scope.Selector{Project: project, User: w.User, Agent: w.Agent, Session: w.Session, All: w.AllUsers}
	if named := w.User != nil || w.Agent != nil || w.Session != nil; named == w.AllUsers {
		return sel, errors.New("name --user, --agent or --session, or read the whole project with --all-users")
	}
	return sel, nil
}

// body returns the levels as a member of a request.
func (w Whose) body() api.Selector {
	return api.Selector{User: w.User, Agent: w.Agent, Session: w.Session, All: w.AllUsers}
}

// asks returns the client and the selector of a command that reads.
func (w Whose) asks(inv *app.Invocation) (*client.Client, scope.Selector, error) {
	sel, err := w.Selector(inv.Project())
	if err != nil {
		return nil, sel, err
	}
	cl, err := inv.Client()
	return cl, sel, err
}
