package store

import (
	"context"

	"palimpsest/internal/memory"
)

// Eraser removes everything of one user from a store that no other process, and
// no service of this process, uses meanwhile.
type Eraser interface {
	// Erase must delete every row of each scope of the user: episodes, facts and
	// their versions, the text index, vectors and those that are pending, entities,
	// edges, holds, outcomes, cached replies, claims, sessions and watermarks, and
	// the answers that the project keeps for Idempotency-Keys, which may quote the
	// user. When it returns nil no byte of these rows is left in the files of the
	// backend, as far as the backend can reach them, nor in an older generation
	// of the store, which it removes. It returns the number of episodes, facts and
	// rows in all. It is idempotent. The store must be closed behind it: caches in
	// memory may hold rows.
	Erase(ctx context.Context, whom memory.Whom) (Erased, error)
	// Scan counts what is left of the user: scopes, and rows that belong to no scope.
	Scan(ctx context.Context, whom memory.Whom) (uint64, error)
}

// Erased counts what was deleted.
type Erased struct {
	Scopes, Episodes, Facts, Rows uint64
	// Beyond says what the backend could not reach, for the receipt.
	Beyond []string
}
