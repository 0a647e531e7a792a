package audit

import (
	"context"
	"errors"
	"iter"
	"time"

	"palimpsest/internal/cursor"
	"palimpsest/internal/filter"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The sentinel errors of journals.
var (
	// ErrConflict: the scope has effects after the sequence that was expected.
	ErrConflict = errors.New("audit: the scope has newer effects")
	// ErrTrimmed: AUDIT dropped effects before they were read. The audit log may
	// have them. A reader continues after the last effect that was yielded.
	ErrTrimmed = errors.New("audit: effects were dropped before they were read")
)

// Journal is the AUDIT stream, one ordered list of effects per fact scope.
type Journal interface {
	Appender
	Reader
}

// Appender commits effects.
type Appender interface {
	// Append commits the effect, if the newest of its scope stands at after (0:
	// none), and returns where it stands. It must return [ErrConflict], and
	// commit nothing, if the scope's newest stands elsewhere. Once it returns
	// nil the effect is durable; any other error leaves open whether it was
	// committed.
	Append(ctx context.Context, meta events.Meta, effect events.EffectCommitted, after uint64) (sequence uint64, err error)
}

// Reader reads effects as they were committed.
type Reader interface {
	// ReadScope yields the effects of one fact scope behind sequence after, in
	// order, up to those committed when it was called.
	ReadScope(ctx context.Context, fact scope.Scope, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error]
	// Read yields the effects within sel behind sequence after, in stream order,
	// up to those committed when it was called. Where AUDIT has dropped some of
	// what stood behind after, or drops some meanwhile, it must yield what comes
	// before and then [ErrTrimmed].
	Read(ctx context.Context, sel scope.Selector, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error]
	// Last returns the sequence of the newest effect of all, 0 for none.
	Last(ctx context.Context) (uint64, error)
}

// Stream is the journal as those read it who replay it and follow it.
type Stream interface {
	Reader
	// Follow yields what Read yields, and then effects as they are committed,
	// until ctx ends, whose error is the last it yields.
	Follow(ctx context.Context, sel scope.Selector, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error]
	// Since returns the sequence behind which stands all that AUDIT took at the
	// instant at or later, by the clock of the broker.
	Since(ctx context.Context, at time.Time) (uint64, error)
	// Begin is as in [RebuildReader].
	Begin(ctx context.Context) (uint64, error)
}

// TailReader is what a start asks the journal, to find what the log lacks.
type TailReader interface {
	// All yields the effects of every scope behind sequence after, in stream
	// order, up to those committed when it was called.
	All(ctx context.Context, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error]
}

// Heads is what a start asks the journal, to find the scopes that are behind.
type Heads interface {
	// Heads calls yield with the newest entry of each fact scope that AUDIT holds
	// anything of, in no order, until yield returns an error, which it returns.
	Heads(ctx context.Context, yield func(Head) error) error
}

// Head is where the newest entry of a fact scope stands in AUDIT.
type Head struct {
	Scope    scope.Scope
	Sequence uint64
}

// RebuildReader reads the journal from end to end: what a rebuild reads.
type RebuildReader interface {
	TailReader
	// Begin is the lowest sequence that AUDIT may hold: what stood below it was
	// dropped because of its age or the stream's size. It is 1 or less where
	// nothing was.
	Begin(ctx context.Context) (uint64, error)
}

// EffectArchive keeps effects whole, those too that AUDIT has dropped.
type EffectArchive interface {
	// Heads tells of the newest effect of each fact scope, in any order.
	Heads
	// Effects yields the effects of one fact scope with revisions above after,
	// by revision, each with its sequence in AUDIT.
	Effects(ctx context.Context, fact scope.Scope, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error]
}

// Archive replays what AUDIT has dropped.
type Archive interface {
	// Between yields the effects within sel behind sequence after and not behind
	// sequence until that hold a record which matches, in stream order. Nil matches
	// every effect. It must yield what [Holds] keeps, also of effects whose records
	// the log keeps no more. The Arrived of the envelopes is zero.
	Between(ctx context.Context, sel scope.Selector, after, until uint64, matching filter.Expr) iter.Seq2[events.Event[events.EffectCommitted], error]
	// LastSequence is the highest stream sequence written, 0 for none.
	LastSequence(ctx context.Context) (uint64, error)
}

// Writer is the audit sink's role.
type Writer interface {
	// Write stores effects, whole and as one record per delta (see [Records]).
	// It is idempotent by (project, scope, revision, index): a stored effect
	// changes nothing. Nil only after they are durable. If the log has another
	// effect with the same revision, it must write nothing and return
	// [ErrOtherHistory].
	Write(ctx context.Context, effects []events.Event[events.EffectCommitted]) error
}

// Log also keeps each effect whole, so that memory can be rebuilt where the
// stream was trimmed; it answers questions about what was committed.
type Log interface {
	Writer
	EffectArchive
	Archive
	Reports
	// Readers that write to the log keep their cursors in it.
	cursor.Store
	// History returns the records that concern a fact, oldest first: by
	// (applied at, scope, revision, index).
	History(ctx context.Context, project, factID string) ([]Record, error)
	// Records returns records within sel that match q, in stream order.
	Records(ctx context.Context, sel scope.Selector, q Query) ([]Record, error)
	// Ping returns nil if the log can read and write.
	Ping(ctx context.Context) error
	Close() error
}

// Query narrows records.
type Query struct {
	AfterSequence uint64 // exclusive: whole effects are skipped
	From, To      time.Time
	Kinds         []events.DeltaKind
	Rule          string
	CorrelationID string
	Limit         int // 1 to 10000
}

// Record is one delta as it was applied.
type Record struct {
	Scope    scope.Scope `json:"scope"`
	Revision uint64      `json:"revision"`
	// Index of the delta in its effect, from 0.
	Index      int              `json:"index"`
	Sequence   uint64           `json:"sequence"` // in the AUDIT stream
	DeltaID    string           `json:"delta_id"`
	Kind       events.DeltaKind `json:"kind"`
	Reason     events.Reason    `json:"reason"`
	Rule       string           `json:"rule"`    // the consolidation rule
	RuleID     string           `json:"rule_id"` // the pattern, key or prompt
	DecidedBy  string           `json:"decided_by"`
	Extractor  string           `json:"-"` // of the effect; logs do not give it back
	Confidence float64          `json:"confidence"`
	FactID     string           `json:"fact_id,omitempty"`
	// Before and After are the fact's versions, nil where there is none.
	Before        *events.Fact `json:"before,omitempty"`
	After         *events.Fact `json:"after,omitempty"`
	Sources       []string     `json:"sources,omitempty"`
	RequestID     string       `json:"request_id,omitempty"`
	CandidateID   string       `json:"candidate_id,omitempty"`
	CorrelationID string       `json:"correlation_id,omitempty"`
	EventTime     time.Time    `json:"event_time,omitzero"`
	DecidedAt     time.Time    `json:"decided_at"`
	AppliedAt     time.Time    `json:"applied_at"`
}
