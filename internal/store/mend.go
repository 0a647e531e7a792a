package store

import "context"

// Mender is a store on a server that may come back with less than it
// acknowledged: restarted from an older copy, failed over to a replica that was
// behind, emptied; or with another generation, which a rebuild has promoted and
// which lacks what came meanwhile. All processes that use the store notice.
//
// From then until it is mended, writes that count on what is there change nothing
// and return [ErrLost], and so does Ping. Reads go on, but for those of ranges of
// episodes that must not lack any: what is decided on these is never decided again.
type Mender interface {
	// Lost returns a channel that is closed while the store is lost. One that was
	// closed stays so: after a mend, the next call returns another.
	Lost() <-chan struct{}
	// Scattered reports whether scopes lie on several servers, each of which may
	// lose its own: that what was written last is there says nothing of the rest.
	Scattered() bool
	// Mend returns once the store is whole, at once where it is. Meanwhile it has
	// remedy put back what is its to put back, each part when its turn has come,
	// and waits for other processes to put back the rest; of all processes one
	// works at a time, and what one has put back is not asked of another. What is
	// lost while a part is put back has it put back again. An error of remedy ends
	// it, and the part is as it was.
	Mend(ctx context.Context, remedy Remedy) error
}

// Remedy is what a process can put back into a store that is lost, part by part
// in this order. A nil part is left to others. through is the store itself, which
// takes writes of the remedy while it runs and must not be kept.
type Remedy struct {
	// Episodes stores again what was said: no episode may get the ordinal of one
	// that is missing.
	Episodes func(ctx context.Context, through Store) error
	// Effects applies again what came of it.
	Effects func(ctx context.Context, through Store) error
}
