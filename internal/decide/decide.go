package decide

import (
	"context"
	"strconv"
	"strings"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Decider turns candidates into deltas.
type Decider interface {
	// Name is how deltas name the decider: rules@v or llm:model.
	Name() string
	// Decide returns at least one delta for each candidate, in their order. Each
	// candidate is decided against a working view that includes the deltas of
	// those before it, so that cutting a sequence into batches changes nothing.
	// It returns a [*FactConflictError] for replaces that cannot be resolved and
	// an [*InvalidCandidateError] for an intent that makes no sense or a field
	// that no fact can be made of, and then no decision: decide again without
	// that candidate.
	//
	// The fact of an add or update is the whole after-image, sources and sessions
	// already merged, except for the fields that the commit sets: Revision, EntityIDs,
	// Supersedes. Superseded versions end when their successor's ValidFrom comes,
	// deleted facts when the candidate's does (see [Since]), neither before it
	// began.
	//
	// A candidate that would change a fact that changed too often lately ([Breaker])
	// changes nothing: it becomes an add of a hold, reason churn. Of the candidates
	// on one fact only the newest is held; each that it replaces, whether of the
	// batch or of [Known].Held, becomes a NOOP, reason churn, and so does an earlier
	// statement. A candidate that is decided on replaces those held before it
	// likewise, so that no hold outlasts a later statement on the same matter.
	Decide(ctx context.Context, candidates []events.Candidate, known Known) (Decision, error)
}

// Decision is the outcome of a batch.
type Decision struct {
	Deltas events.Deltas
	// Mentions holds, per delta id, the entities that its fact names.
	Mentions map[string][]events.Mention
}

// Known is what the decider knows of the scope. Facts found by one lookup and
// by another are the same values.
type Known struct {
	Scope scope.Scope
	// At stands in for the wall clock: PromotionTS, CreatedAt, UpdatedAt.
	At time.Time
	// Cause is the message the deltas follow from: delta ids are
	// hash(Cause, index).
	Cause string
	// RequestID and Actor are set when an API caller brought the candidates; the
	// deltas then name the actor as their decider.
	RequestID string
	Actor     string
	// Breaker bounds how often a fact changes; the zero Breaker lets all through.
	Breaker Breaker
	// Held is the scope's held buffer.
	Held []events.Hold
	// Decay is the rate of a new fact by its kind; nil for the defaults.
	Decay func(events.FactKind) float64
	// Prompt replaces the configured instruction of a model where it is not empty.
	Prompt string
	// Advice says, by the id of a candidate, what to do with it where steps 1 to 3
	// leave it open.
	Advice map[string]Advice
	// Lookup finds what is known. It is narrow on purpose: exact keys and text,
	// so that decisions do not depend on how far vectors lag.
	Lookup Lookup
}

// Advice is a decision on a candidate from outside the decider, such as from a
// model. It is not taken if one of its facts does not hold any more, or was stated
// later than the candidate.
type Advice struct {
	// Op is what to do: an add or nothing leaves it to the steps, an update rewrites
	// the one fact, a delete ends the facts, a noop adds the candidate's sources to
	// the one fact.
	Op    events.DeltaKind
	Facts []string
	// Text is that of an update; empty stands for the candidate's.
	Text string
	// Keep: a candidate that ends facts is a fact itself.
	Keep bool
	// By is who decided, as deltas name it: llm:model.
	By string
}

// Lookup is what a decider may ask of the store, always within one fact scope.
type Lookup interface {
	// ByID returns the newest version of each fact found, valid or not.
	ByID(ctx context.Context, ids []string) ([]events.Fact, error)
	// ByHash returns every version of every fact with one of those md5 of Text,
	// closed ones included.
	ByHash(ctx context.Context, hashes []string) ([]events.Fact, error)
	// ByPredicate returns every version of every fact with that subject and
	// predicate, closed ones included.
	ByPredicate(ctx context.Context, subject, predicate string) ([]events.Fact, error)
	// ByTriple returns every version, closed ones included, that has the subject and
	// predicate of one of ts, and its object, as objects are compared (see lex.Object),
	// or cardinality one. It may return others with that subject and predicate. A user
	// can like a thousand things: facts about the others must cost nothing.
	ByTriple(ctx context.Context, ts []events.Triple) ([]events.Fact, error)
	// Versions returns every version of a fact; none for an unknown id.
	Versions(ctx context.Context, id string) ([]events.Fact, error)
	// Similar returns up to limit valid facts whose text is most similar, best
	// first.
	Similar(ctx context.Context, text string, limit int) ([]events.Fact, error)
}

// Since is when what a candidate states began to be true: its ValidFrom, or
// when it was said.
func Since(c events.Candidate) time.Time {
	if c.ValidFrom != nil {
		return *c.ValidFrom
	}
	return c.EventTime
}

// InvalidCandidateError says that no decision is possible on a candidate.
type InvalidCandidateError struct {
	CandidateID string
	Field       string // of the candidate, or of its episode (metadata.intent)
	Reason      string
}

func (e *InvalidCandidateError) Error() string {
	return "decide: candidate " + e.CandidateID + ": " + e.Field + ": " + e.Reason
}

// FactConflictError says that the replaces of a candidate cannot be resolved.
// The other candidates of the batch are decided without it.
type FactConflictError struct {
	CandidateID string
	Missing     []string      // ids that no fact of the scope has
	Found       []events.Fact // those that were found
}

func (e *FactConflictError) Error() string {
	sides := make([]string, 0, len(e.Missing)+len(e.Found))
	for _, id := range e.Missing {
		sides = append(sides, strconv.QuoteToGraphic(id)+" is unknown")
	}
	for _, f := range e.Found {
		side := f.ID + " is at revision " + strconv.FormatUint(f.Revision, 10)
		if f.ValidUntil != nil {
			side += ", closed at " + f.ValidUntil.UTC().Format(time.RFC3339)
		}
		sides = append(sides, side)
	}
	if len(sides) > 5 { // the dead letter has them all
		sides = append(sides[:5], "…")
	}
	return "decide: candidate " + e.CandidateID + " replaces facts that cannot be resolved: " + strings.Join(sides, "; ")
}
