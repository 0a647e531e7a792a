package audit

import (
	"context"

	"palimpsest/internal/memory"
)

// Eraser removes everything of one user from an audit log. Nothing else may write
// to the log meanwhile.
type Eraser interface {
	// Erase must delete the effects, records and counts of each scope of the user.
	// When it returns nil no byte of them is left in the files of the backend, as
	// far as the backend can reach them. It returns the number of effects and of
	// rows in all. It is idempotent.
	Erase(ctx context.Context, whom memory.Whom) (Erased, error)
	// Scan counts what is left of the user: scopes.
	Scan(ctx context.Context, whom memory.Whom) (uint64, error)
}

// Erased counts what was deleted.
type Erased struct {
	Effects, Rows uint64
	// Beyond says what the backend could not reach, for the receipt.
	Beyond []string
}
