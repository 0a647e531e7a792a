package events

import (
	"strconv"
	"time"
)

// MaxTickEpisodes bounds the episodes of one tick.
const MaxTickEpisodes = 200

// MaxUpkeepFacts bounds the facts of one maintenance tick, and MaxUpkeepEntities the
// entities: a model summarises them in one call.
const (
	MaxUpkeepFacts    = 200
	MaxUpkeepEntities = 20
)

// The steps of maintenance.
const (
	StepPrune  = "prune"  // closes facts whose confidence fell below the threshold
	StepEnrich = "enrich" // gives entities that are mentioned often a summary
)

// Upkeep is the work of a maintenance tick: one step, over named facts in place of a
// range. It moves no watermark. Each stage looks again whether the work is still due.
type Upkeep struct {
	Step string `json:"step"`
	// FactIDs are the ids of what the step works on: of entities for [StepEnrich].
	FactIDs []string `json:"fact_ids"`
	// At is when the work was found due.
	At time.Time `json:"at"`
}

func (u Upkeep) validate() error {
	switch {
	case u.Step == "":
		return invalid("upkeep.step", "is required")
	case len(u.FactIDs) == 0 || len(u.FactIDs) > MaxUpkeepFacts:
		return invalid("upkeep.fact_ids", "has %d members, outside 1 to %d", len(u.FactIDs), MaxUpkeepFacts)
	case u.At.IsZero():
		return invalid("upkeep.at", "is required")
	}
	return nil
}

// TickIssued asks for one rule's consolidation of a range of one fact scope.
// One tick of a (rule, scope) is under way at a time.
type TickIssued struct {
	Batch
	// SessionEnds lists the sessions whose end made the rule due, so that held
	// candidates can be settled and summaries written. Empty for other causes.
	SessionEnds []SessionEnd `json:"session_ends,omitempty"`
	// Prompt replaces the configured extraction prompt; only episodes that ask for a
	// tick of their own have one.
	Prompt string `json:"prompt,omitempty"`
}

// SessionEnd says which session ended, after which ordinal, and why. Its
// identity is (session, last ordinal), whatever the cause.
type SessionEnd struct {
	Session     string    `json:"session"`
	LastOrdinal uint64    `json:"last_ordinal"`
	Cause       EndCause  `json:"cause"`
	At          time.Time `json:"at"`
}

// Kind implements [Payload].
func (TickIssued) Kind() Kind { return KindTickIssued }

// Identity implements [Identified]: two schedulers that find the same range due
// publish the same id.
func (t TickIssued) Identity() []string {
	id := []string{
		t.Rule, t.Scope.Project, t.Scope.Key(), strconv.FormatUint(t.Incarnation, 10),
		strconv.FormatUint(t.Range.From, 10), strconv.FormatUint(t.Range.To, 10), strconv.Itoa(t.Attempt),
	}
	if u := t.Upkeep; u != nil {
		id = append(append(id, u.Step, u.At.UTC().Format(time.RFC3339Nano)), u.FactIDs...)
	}
	return id
}

// Validate implements [Payload].
func (t TickIssued) Validate() error { return t.Batch.validate() }
