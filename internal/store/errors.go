package store

import "errors"

// The sentinel errors of the contract.
var (
	// ErrNotFound: the id is unknown in its project or scope.
	ErrNotFound = errors.New("store: not found")
	// ErrBehind: the scope's row lacks effects before the one given; roll the
	// scope forward from AUDIT and try again.
	ErrBehind = errors.New("store: scope is behind the audit stream")
	// ErrIncarnation: the scope was erased since the work began.
	ErrIncarnation = errors.New("store: older incarnation of the scope")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store: closed")
	// ErrLocked: another process holds the store.
	ErrLocked = errors.New("store: in use by another process")
	// ErrNewer: the store was written by a newer version.
	ErrNewer = errors.New("store: written by a newer version")
	// ErrEmbedder: a vector is of another space than the one that is asked.
	ErrEmbedder = errors.New("store: vectors are of another embedder")
	// ErrDamaged: what the store's file holds cannot be read. It can be built
	// anew from the streams.
	ErrDamaged = errors.New("store: damaged")
	// ErrAway: the store's server does not take part yet, or any more: it starts,
	// or another takes its place.
	ErrAway = errors.New("store: away")
	// ErrLost: the store may hold less than it acknowledged, and takes no write
	// before that is put back; see [Mender].
	ErrLost = errors.New("store: lost acknowledged writes, which are to be put back first")
	// ErrFull: there is no room for more.
	ErrFull = errors.New("store: no space left")
	// ErrMismatch: a request id is known with another body.
	ErrMismatch = errors.New("store: request id is known with another body")
)
