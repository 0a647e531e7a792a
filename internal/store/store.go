package store

import (
	"context"
	"time"

	"palimpsest/internal/cursor"
	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

// Store is what a backend provides: the sum of the roles. Nothing but
// internal/app takes it whole.
type Store interface {
	EpisodeWriter
	EpisodeReader
	Schedule
	cursor.Store
	cursor.Shares
	Applier
	FactReader
	OutcomeReader
	Searcher
	OrdinalReader
	VectorWriter
	Requests
	Cache
	Exporter
	Ledger
	Health
	// Close waits for writes under way. Later calls return [ErrClosed].
	Close() error
}

// Requests makes POSTs idempotent.
type Requests interface {
	// Begin records that (project, route, key) is asked with a body of that
	// hash, until expires. It returns the earlier answer where there is one, and
	// [ErrMismatch] where the key is known with another body.
	Begin(ctx context.Context, r Request) (earlier *Request, err error)
	// Finish records the answer.
	Finish(ctx context.Context, r Request) error
}

// Request is one idempotent POST. Status 0 means that it is under way.
type Request struct {
	Project, Route, Key string
	BodyHash            string
	CorrelationID       string
	Status              int
	Body                []byte
	Expires             time.Time
}

// Cache keeps model replies, so that a redelivery costs no second call.
type Cache interface {
	// Cached returns nil where there is nothing, or it has expired.
	Cached(ctx context.Context, fact scope.Scope, key string) ([]byte, error)
	PutCached(ctx context.Context, fact scope.Scope, key string, value []byte, expires time.Time) error
}

// Exporter reads everything, for export, digest and comparison.
type Exporter interface {
	// Projects returns those that hold anything, in order.
	Projects(ctx context.Context) ([]string, error)
	// Scopes calls yield for each fact scope within sel that holds anything,
	// ordered by (project, key).
	Scopes(ctx context.Context, sel scope.Selector, yield func(scope.Scope) bool) error
	// Snapshot returns the projection rows of one fact scope, read in one
	// consistent view, each list ordered by id (versions by id, revision).
	Snapshot(ctx context.Context, fact scope.Scope) (Snapshot, error)
}

// Snapshot is what effects have made of one fact scope; [memory.Export] gives
// it its canonical form.
type Snapshot = memory.Snapshot

// Ledger is bookkeeping over state.
type Ledger interface {
	// Accounts returns one account per (rule, fact scope) within sel that has
	// episodes or a watermark, ordered by (project, key, rule). rules names
	// those that are enabled, so that a scope without a watermark shows as
	// pending.
	Accounts(ctx context.Context, sel scope.Selector, rules []string) ([]Account, error)
}

// Account must balance: Accepted = Consolidated + Pending + Skipped.
type Account struct {
	Scope        scope.Scope `json:"scope"`
	Rule         string      `json:"rule"`
	Accepted     uint64      `json:"accepted"`     // episodes: the last ordinal
	Consolidated uint64      `json:"consolidated"` // covered by effects
	Pending      uint64      `json:"pending"`      // above the watermark
	Skipped      uint64      `json:"skipped"`      // in buried ranges
	Candidates   uint64      `json:"candidates"`
	Decided      uint64      `json:"decided"`
	Held         uint64      `json:"held"`
	Dropped      uint64      `json:"dropped"`
}

// Balanced reports whether every episode and candidate is accounted for.
func (a Account) Balanced() bool {
	return a.Accepted == a.Consolidated+a.Pending+a.Skipped && a.Candidates == a.Decided+a.Held+a.Dropped
}

// Plus is a with the counts of b added.
func (a Account) Plus(b Account) Account {
	a.Accepted += b.Accepted
	a.Consolidated += b.Consolidated
	a.Pending += b.Pending
	a.Skipped += b.Skipped
	a.Candidates += b.Candidates
	a.Decided += b.Decided
	a.Held += b.Held
	a.Dropped += b.Dropped
	return a
}

// Health says how the store is.
type Health interface {
	// Ping returns nil if the store can read and write.
	Ping(ctx context.Context) error
	// Stats counts rows and bytes.
	Stats(ctx context.Context) (Stats, error)
}

// Stats is the size of a store.
type Stats struct {
	Schema         int    `json:"schema"`
	Scopes         uint64 `json:"scopes"`
	Episodes       uint64 `json:"episodes"`
	Facts          uint64 `json:"facts"`
	Versions       uint64 `json:"versions"`
	Entities       uint64 `json:"entities"`
	VectorsPending uint64 `json:"vectors_pending"`
	VectorsRefused uint64 `json:"vectors_refused"` // by the embedder; not pending
	// VectorsBuilding counts the texts that are pending in the space under
	// construction, or a few more.
	VectorsBuilding uint64 `json:"vectors_building"`
	Holds           uint64 `json:"holds"`
	Bytes           uint64 `json:"bytes"`
}
