package audit

import (
	"context"
	"fmt"
	"strings"
	"time"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Reports counts over records; every backend gives exactly the same. A report
// spans what was applied within its query, and its rows are in the order of
// their fields, but for Churn.
type Reports interface {
	// DailyDeltas counts deltas by day, rule and kind.
	DailyDeltas(ctx context.Context, q ReportQuery) ([]DailyDeltas, error)
	// Noops counts by rule how many deltas changed nothing.
	Noops(ctx context.Context, q ReportQuery) ([]Noops, error)
	// Churn lists facts that changed more than once, those that went back and
	// forth most often first, then those that changed most often, then by scope
	// key and fact.
	Churn(ctx context.Context, q ReportQuery) ([]Churn, error)
	// Yield counts by rule and extractor what came of episodes.
	Yield(ctx context.Context, q ReportQuery) ([]Yield, error)
	// Latency tells by rule how long it took from said to known.
	Latency(ctx context.Context, q ReportQuery) ([]Latency, error)
	// Cost sums by rule and model what was spent, and the facts that were kept.
	Cost(ctx context.Context, q ReportQuery) ([]Cost, error)
	// Safety counts the candidates that the write policy dropped, by what dropped
	// them.
	Safety(ctx context.Context, q ReportQuery) ([]Safety, error)
	// Feedback counts ratings by fact and value.
	Feedback(ctx context.Context, q ReportQuery) ([]Feedback, error)
}

// ReportQuery narrows a report; zero instants narrow nothing.
type ReportQuery struct {
	Selector scope.Selector
	From, To time.Time // when it was applied: inclusive, exclusive
	Limit    int       // rows, 1 to MaxRecords
}

// Validate returns an error that wraps [ErrQuery].
func (q ReportQuery) Validate() error {
	if q.Limit < 1 || q.Limit > MaxRecords {
		return fmt.Errorf("limit %d is outside 1 to %d: %w", q.Limit, MaxRecords, ErrQuery)
	}
	return nil
}

// DailyDeltas is how many deltas of a kind a rule led to on a day.
type DailyDeltas struct {
	Day    time.Time // its beginning, UTC
	Rule   string
	Kind   events.DeltaKind
	Deltas uint64
}

// Noops is how many of a rule's deltas changed nothing.
type Noops struct {
	Rule          string
	Deltas, Noops uint64
}

// Churn is a fact that changed more than once.
type Churn struct {
	Scope  scope.Scope
	FactID string
	// Changes counts adds, updates and deletes.
	Changes uint64
	// Flips counts the changes that brought back a text which the fact had within
	// the report before, with another in between.
	Flips uint64
}

// Yield is what came of the episodes that an extractor read for a rule.
type Yield struct {
	Rule string
	// Extractor is name@version; empty where an effect does not tell.
	Extractor            string
	Episodes, Candidates uint64
	// Adds counts new facts, also those that were held at first.
	Adds uint64
}

// Latency is the time from said to known: from the event time of a fact that was
// added or updated to when that was applied. Facts whose event time is unknown,
// or lies behind that, or outside the years 1900 to 2261, are left out. The
// percentiles are nearest ranks, exact: the smallest latency that so many per
// cent of the facts do not exceed.
type Latency struct {
	Rule          string
	Facts         uint64
	P50, P95, P99 time.Duration // whole milliseconds
}

// Cost counts a rule's calls of a model, as the effects charge them, and the facts that
// followed.
type Cost struct {
	Rule string
	// Model is empty where no language model extracted or decided.
	Model                            string
	Calls, InputTokens, OutputTokens uint64
	// Dollars is what the calls cost, where the provider has prices.
	Dollars float64
	// Facts counts those whose newest change within the report was made by this
	// rule and model, and was no delete.
	Facts uint64
}

// Safety is how many candidates the write policy dropped because of a safety marker,
// or because the project keeps nothing sensitive.
type Safety struct {
	Reason events.Reason // ReasonSafety or ReasonSensitive
	Rule   string
	// RuleID is safety: and the marker, or the pattern that marks what it finds. It has
	// no text of a message.
	RuleID string
	Drops  uint64
}

// Feedback is how often a fact was given a rating.
type Feedback struct {
	FactID  string // empty for answers
	Rating  events.RatingValue
	Ratings uint64
}

// RatingOf is the rating that the rule id of a record tells.
func RatingOf(ruleID string) events.RatingValue {
	return events.RatingValue(strings.TrimPrefix(ruleID, events.RuleFeedback))
}

// Told is the reason of the record, where [Reports] count by it, or nothing.
func (r Record) Told() events.Reason {
	switch r.Reason {
	case events.ReasonSafety, events.ReasonSensitive, events.ReasonRated:
		return r.Reason
	}
	return ""
}

// The instants that reports can tell apart in every backend.
var (
	earliest = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2261, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Known returns the milliseconds from the arrival of an episode to its fact. ok is
// false where they are not measurable (see [Latency]).
func (r Record) Known() (ms int64, ok bool) {
	if r.After == nil || r.EventTime.Before(earliest) || r.EventTime.After(latest) || r.EventTime.After(r.AppliedAt) {
		return 0, false
	}
	return r.AppliedAt.UnixMilli() - r.EventTime.UnixMilli(), true
}

// Value is the hash of the text that the fact has after the change; empty where
// there is none.
func (r Record) Value() string {
	if r.After == nil {
		return ""
	}
	return r.After.Hash
}

// modelPrefix begins the DecidedBy of what a language model decided.
const modelPrefix = "llm:"

// Model is the language model that decided, or else the one that extracted; empty
// where none did.
func (r Record) Model() string {
	if model, ok := strings.CutPrefix(r.DecidedBy, modelPrefix); ok {
		return model
	}
	model, ok := strings.CutPrefix(r.Extractor, modelPrefix)
	if !ok {
		return ""
	}
	model, _, _ = strings.Cut(model, "@")
	return model
}

// Adds is how many new facts an effect has.
func Adds(e events.EffectCommitted) (n uint64) {
	for _, a := range e.Applied {
		if a.Delta.Kind() == events.DeltaAdd && a.FactID != "" {
			n++
		}
	}
	return n
}
