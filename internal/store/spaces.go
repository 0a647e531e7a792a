package store

import (
	"context"

	"palimpsest/internal/embed"
)

// VectorSpaces changes the embedder of a store without downtime. A space is the
// vectors of one embedder. One is served; beside it one may be under construction.
//
// A text that arrives during the construction must become pending in both spaces, so
// that the served one stays whole; the space under construction is served only once
// nothing is pending in it. After a crash the construction resumes where it stopped.
type VectorSpaces interface {
	SpaceReader
	// BuildSpace begins a space of an embedder, in which each text is pending. It
	// changes nothing where that space is already under construction; one of another
	// embedder is dropped, also where the embedder is that of the served space. A
	// store without vectors serves the space at once.
	BuildSpace(ctx context.Context, embedder embed.Info) error
	// MoveSpaces takes the change of the embedder a step on: it serves the space under
	// construction once nothing is pending in it, and drops the vectors of spaces that
	// are neither served nor under construction. done means that nothing is left to
	// do. It is called again while texts are embedded, and after a restart.
	MoveSpaces(ctx context.Context) (done bool, err error)
}

// SpaceReader tells which spaces there are.
type SpaceReader interface {
	// Spaces returns the spaces as the process knows them, without I/O. A process
	// may learn of a change by another with a delay of seconds; until then the
	// vectors of the space that it serves must stay.
	Spaces() Spaces
}

// Spaces are the vector spaces of a store.
type Spaces struct {
	Served Space
	// Next is under construction; nil where none is.
	Next *Space
}

// All returns the served space, then the one under construction.
func (s Spaces) All() []Space {
	if s.Next == nil {
		return []Space{s.Served}
	}
	return []Space{s.Served, *s.Next}
}

// Space names a vector space. No two spaces of a store have the same ID, which is
// never 0. The embedder has no dimensions while the first vector is to come and the
// store was opened without an embedder.
type Space struct {
	ID       uint64
	Embedder embed.Info
}
