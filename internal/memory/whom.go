package memory

import "palimpsest/pkg/scope"

// Whom identifies the user of an erasure. An erasure stores no name, so each place that
// holds data passes it the names of its users.
type Whom struct {
	Project string
	// Is reports whether a user of the project is the one. It is never called with
	// an empty name.
	Is func(user string) bool
}

// Owns reports whether data of a scope is of that user.
func (w Whom) Owns(s scope.Scope) bool {
	return s.Project == w.Project && s.User != "" && w.Is(s.User)
}
