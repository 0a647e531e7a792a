package extract

import (
	"context"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Extractor proposes candidates.
type Extractor interface {
	// Name is name@version, as it stands in Candidate.Extractor.
	Name() string
	// Extract returns what the episodes say, in the order of their ordinals and,
	// within one, of their text. The same episodes with the same context give the
	// same candidates. An extractor without a model is a function of its arguments
	// however a sequence was cut into calls. It must not return a candidate whose
	// evidence quote is not in its source episodes. The caller owns the episodes.
	Extract(ctx context.Context, episodes []memory.Episode, in Context) ([]events.Candidate, error)
}

// CategoryCausal is the category of a candidate of the kind relation whose subject and
// object are the ids of two episodes, the first of which is the cause of the second.
const CategoryCausal = "causal"

// ContextTurns is how many turns before an episode an extractor may look at.
const ContextTurns = 4

// Context is what an extractor may read besides the episodes.
type Context struct {
	// Scope is the fact scope of the episodes.
	Scope scope.Scope
	// Rule is the id of the consolidation rule that runs.
	Rule string
	// Before holds up to [ContextTurns] turns before the first episode of each
	// session among the episodes, oldest first.
	Before []memory.Episode
	// Prompt replaces the configured extraction prompt where it is not empty.
	Prompt string
	// Known reads the facts that rest on the episodes already; nil for none.
	Known func(ctx context.Context) ([]events.Fact, error)
}

// UnusableError says that an extractor will never extract these episodes. Another
// one may.
type UnusableError struct {
	// Reply is the unreadable reply of a model; empty where there is none.
	Reply string
	Err   error
}

func (e *UnusableError) Error() string { return "extract: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *UnusableError) Unwrap() error { return e.Err }
