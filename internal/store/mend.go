package store

import "context"

// Mender is a store on a server that may come back with less than it acknowledged:
// restarted from an older copy, failed over to a replica that was behind, or
// emptied. It may also come back with another generation, which a rebuild has
// promoted and which lacks the writes that arrived meanwhile. All processes that use
// the store detect it.
//
// From then until the store is mended, writes that depend on stored rows change
// nothing and return [ErrLost], and so does Ping. Reads go on, except for those of
// ranges of episodes that must be complete, since a decision on such a range is
// never made again.
type Mender interface {
	// Lost returns a channel that is closed while the store is lost. One that was
	// closed stays so: after a mend, the next call returns another.
	Lost() <-chan struct{}
	// Scattered reports whether scopes are spread over several servers, each of which
	// may lose its own: the newest write on one says nothing about the others.
	Scattered() bool
	// Mend returns once the store is whole, at once if it is. Until then it calls the
	// parts of remedy in order, and waits while other processes run theirs. One process
	// works at a time, and a part that one has restored is not requested from another.
	// If data is lost while a part runs, the part runs again. If remedy returns an
	// error, Mend returns it, and the part counts as not restored.
	Mend(ctx context.Context, remedy Remedy) error
}

// Remedy is the data that a process can restore to a store that is lost, part by
// part in this order. A nil part is left to others. through is the store itself,
// which takes writes of the remedy while it runs and must not be kept.
type Remedy struct {
	// Episodes stores the episodes again: no episode may get the ordinal of a missing
	// one.
	Episodes func(ctx context.Context, through Store) error
	// Effects applies the effects again.
	Effects func(ctx context.Context, through Store) error
}
