package memory

import "palimpsest/pkg/scope"

// Whom is the user whose data an erasure removes. An erasure stores no name, so a
// place that holds data asks about the name of each user that it has.
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
