package store

import (
	"context"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Applier is the role of the consolidator alone.
type Applier interface {
	StateReader
	WholeReader
	// Apply writes an effect that stands in AUDIT at auditSeq. All of it becomes
	// visible in one atomic step: rows, text index, versions, holds, watermark,
	// session ends, outcomes, and the scope's revision and audit sequence.
	// Facts whose text is new get their vector flagged as pending. One that is
	// reopened counts as accessed when it was: it must not be due for pruning again
	// at once.
	//
	// Revision guards it: an effect at or below the scope's revision changes
	// nothing and returns nil; one more than a revision above it must change
	// nothing and return [ErrBehind]; one of an older incarnation,
	// [ErrIncarnation].
	Apply(ctx context.Context, effect events.EffectCommitted, auditSeq uint64) error
	// Skipped returns the ranges of (rule, scope) that were buried and that no late
	// batch has made good since, in order.
	Skipped(ctx context.Context, fact scope.Scope, rule string) ([]events.Range, error)
	// Touch counts an access of each fact and reinforces its Strength (see
	// memory.Reinforce); it changes no revision. Unknown ids are ignored.
	Touch(ctx context.Context, fact scope.Scope, ids []string, at time.Time) error
	// Advance raises the last ordinal of a scope to its highest watermark. Where
	// a store is built anew and the stream no longer has all that was said, the
	// next episode would otherwise get an ordinal that counts as consolidated.
	Advance(ctx context.Context, fact scope.Scope) error
}

// FactReader reads what is known.
type FactReader interface {
	// Fact returns the newest version with its statistics, or [ErrNotFound].
	// The id must belong to the project; sel narrows further.
	Fact(ctx context.Context, sel scope.Selector, id string) (Fact, error)
	// Version returns one version of a fact, or [ErrNotFound].
	Version(ctx context.Context, sel scope.Selector, at memory.Address) (Fact, error)
	// Versions returns all versions of a fact, oldest first, or [ErrNotFound].
	Versions(ctx context.Context, sel scope.Selector, id string) ([]Fact, error)
	// Facts lists one version of each fact within sel, ordered by CreatedAt and
	// then ID, newest first. All filters of q apply to that version.
	Facts(ctx context.Context, sel scope.Selector, q FactQuery) ([]Fact, error)
	// FactsByID returns the newest versions of those ids that exist in the fact
	// scope, in no order.
	FactsByID(ctx context.Context, fact scope.Scope, ids []string) ([]Fact, error)
	// FactsByHash (any of those hashes), FactsByPredicate and FactsByTriple return
	// every version, closed ones included, ordered by (id, revision).
	//
	// Of those with the subject and predicate of one of ts, FactsByTriple must
	// return those of cardinality one and those whose object equals that one's by
	// lex.Object, and it must not cost what is known of other objects. It may return
	// some of them.
	FactsByHash(ctx context.Context, fact scope.Scope, hashes []string) ([]Fact, error)
	FactsByPredicate(ctx context.Context, fact scope.Scope, subject, predicate string) ([]Fact, error)
	FactsByTriple(ctx context.Context, fact scope.Scope, ts []events.Triple) ([]Fact, error)
	// Entities returns those of the fact scope whose canonical name or an alias
	// equals one of names by memory.EntityKey; nil names means all.
	Entities(ctx context.Context, fact scope.Scope, names []string) ([]events.Entity, error)
	// EntitiesByID returns the entities of those ids that exist in the fact scope, in
	// no order.
	EntitiesByID(ctx context.Context, fact scope.Scope, ids []string) ([]events.Entity, error)
	// Edges returns the relation and causal edges of the fact scope that begin or end
	// at one of nodes, ids of entities, by id, closed ones included; nil nodes means
	// all such edges. Supersedes edges are not among them.
	Edges(ctx context.Context, fact scope.Scope, nodes []string) ([]events.Edge, error)
	// Holds returns the held buffer of the fact scope by HeldAt, then ID.
	Holds(ctx context.Context, fact scope.Scope) ([]events.Hold, error)
	// ListHolds lists the held buffers within sel by HeldAt, then ID, then the
	// scope's key.
	ListHolds(ctx context.Context, sel scope.Selector, q HoldQuery) ([]Hold, error)
}

// Hold is a held candidate and whose it is.
type Hold struct {
	events.Hold
	Scope scope.Scope
}

// HoldQuery narrows a list of held candidates.
type HoldQuery struct {
	// ID keeps the one of that id, FactID those on one fact.
	ID, FactID string
	Limit      int // 1 to 1000
	Cursor     *HoldCursor
}

// HoldCursor is a place in the order of [FactReader.ListHolds].
type HoldCursor struct {
	HeldAt time.Time
	ID     string
	// Key is the hold's fact scope key, the last tie-break of a read that spans
	// scopes.
	Key string
}

// HoldCursorOf is the place of h.
func HoldCursorOf(h Hold) HoldCursor {
	return HoldCursor{HeldAt: h.HeldAt, ID: h.ID, Key: h.Scope.Key()}
}

// Fact is a fact as the store holds it.
type Fact struct {
	events.Fact
	Scope scope.Scope
	// Strength is the base confidence with the reinforcement of its accesses:
	// what decay starts from. Confidence stays as the newest effect left it, so
	// that accesses never leak into effects. An effect that changes Confidence
	// resets Strength to it, see [memory.Renew].
	Strength    float64
	AccessCount uint64
	// LastAccessed starts as CreatedAt, or later where the fact was put back.
	LastAccessed time.Time
}

// Due says when the fact is due for pruning; ok is false for one that never is.
func (f Fact) Due() (at time.Time, ok bool) {
	return memory.Decays(f.Fact, f.Strength, f.LastAccessed)
}

// DueBy reports whether the fact is due for pruning at an instant.
func (f Fact) DueBy(at time.Time) bool {
	due, ok := f.Due()
	return ok && !due.After(at)
}

// FactQuery narrows a list of facts.
type FactQuery struct {
	// Session keeps the facts that a session contributed to. (The selector's
	// Session is a level of the fact scope: of anonymous sessions alone.)
	Session *string
	Kinds   []events.FactKind
	// ValidAt lists of each fact the version that held then, which is the newest of
	// those that had begun, and keeps it if it was valid then. Zero lists newest
	// versions, closed ones too.
	ValidAt time.Time
	// Earlier keeps of those the versions that a newer one has succeeded. It needs
	// ValidAt.
	Earlier         bool
	IncludeArchived bool
	Filter          *Filter
	Limit           int // 1 to 1000
	Cursor          *FactCursor
}

// FactCursor is a place in the order of [FactReader.Facts].
type FactCursor struct {
	CreatedAt time.Time
	ID        string
}

// OutcomeReader is a waiter's role.
type OutcomeReader interface {
	// Outcomes returns what has come of a correlation id so far, by revision;
	// kept 7 days.
	Outcomes(ctx context.Context, project, correlationID string) ([]events.Outcome, error)
}
