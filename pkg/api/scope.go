package api

import "palimpsest/pkg/scope"

// Scope names whose a datum is, in a body or an answer. The project is that of
// the caller's key, or the one named by the query parameter "project".
type Scope struct {
	User    string `json:"user,omitempty" doc:"Identifier of the user, compared byte for byte." maxLength:"256"`
	Agent   string `json:"agent,omitempty" doc:"Identifier of the agent." maxLength:"256"`
	Session string `json:"session,omitempty" doc:"Identifier of the session." maxLength:"256"`
}

// In returns the scope within a project.
func (s Scope) In(project string) scope.Scope {
	return scope.Scope{Project: project, User: s.User, Agent: s.Agent, Session: s.Session}
}

// ScopeOf drops the project of s.
func ScopeOf(s scope.Scope) Scope {
	return Scope{User: s.User, Agent: s.Agent, Session: s.Session}
}

// Selector is a widening read: a level left out matches anything, an empty one
// matches only what lacks that level.
type Selector struct {
	User    *string `json:"user,omitempty" doc:"Left out: any user. Empty: only what names no user."`
	Agent   *string `json:"agent,omitempty" doc:"Left out: any agent. Empty: only what names no agent."`
	Session *string `json:"session,omitempty" doc:"Left out: any session. Empty: only what names no session."`
	All     bool    `json:"all,omitempty" doc:"Read the whole project, naming no level."`
}

// In returns the selector within a project.
func (s Selector) In(project string) scope.Selector {
	return scope.Selector{Project: project, User: s.User, Agent: s.Agent, Session: s.Session, All: s.All}
}
