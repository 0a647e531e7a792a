package mcp

import (
	"errors"

	"palimpsest/pkg/api"
)

// Whose are the arguments of a call that name a scope. It is exported because
// schemas are made of exported fields alone.
type Whose struct {
	User    string `json:"user,omitempty" jsonschema:"Identifier of the user. Left out: the user that the server was configured with."`
	Agent   string `json:"agent,omitempty" jsonschema:"Identifier of the agent. Left out: reads include what any agent wrote, writes are filed under the configured agent."`
	Session string `json:"session,omitempty" jsonschema:"Identifier of the conversation. Left out: reads include all conversations."`
}

var errNobody = errors.New(`no user is named: pass the argument "user" (or "agent", or "session"); this server has no default`)

// reads returns the scope of a read: as wide as the arguments and the defaults
// allow, so that each agent finds the facts that other agents wrote of a user.
func (s *server) reads(w Whose) (api.Selector, error) {
	d := s.config.Default
	w.User = either(w.User, d.User)
	if w.User == "" {
		w.Agent = either(w.Agent, d.Agent)
	}
	if w.User == "" && w.Agent == "" {
		w.Session = either(w.Session, d.Session)
	}
	sel := api.Selector{User: named(w.User), Agent: named(w.Agent), Session: named(w.Session)}
	if w == (Whose{}) {
		return sel, errNobody
	}
	return sel, nil
}

// writes returns the scope of a write: the defaults where no argument says
// otherwise.
func (s *server) writes(w Whose) (api.Scope, error) {
	d := s.config.Default
	out := api.Scope{User: either(w.User, d.User), Agent: either(w.Agent, d.Agent), Session: either(w.Session, d.Session)}
	if out == (api.Scope{}) {
		return out, errNobody
	}
	return out, nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func named(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}
