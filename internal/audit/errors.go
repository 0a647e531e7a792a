package audit

import "errors"

// The sentinel errors of logs.
var (
	// ErrClosed: the log was closed.
	ErrClosed = errors.New("audit: closed")
	// ErrLocked: another process holds the log.
	ErrLocked = errors.New("audit: in use by another process")
	// ErrNewer: the log was written by a newer version.
	ErrNewer = errors.New("audit: written by a newer version")
	// ErrDamaged: the log's file cannot be read.
	ErrDamaged = errors.New("audit: damaged")
	// ErrQuery: a query is out of bounds.
	ErrQuery = errors.New("audit: query out of bounds")
	// ErrOtherHistory: the log has another effect of that scope and revision. The
	// streams were lost, or restored from another time than the log.
	ErrOtherHistory = errors.New("audit: the log holds another history of the scope")
)

// MaxRecords is the most records that one query may ask for.
const MaxRecords = 10_000
