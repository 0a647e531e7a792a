package events

import (
	"strconv"
	"time"
)

// MaxTickEpisodes bounds the episodes of one tick.
const MaxTickEpisodes = 200

// TickIssued asks for one rule's consolidation of a range of one fact scope.
// One tick of a (rule, scope) is under way at a time.
type TickIssued struct {
	Batch
	// SessionEnds lists the sessions whose end made the rule due, so that held
	// candidates can be settled and summaries written. Empty for other causes.
	SessionEnds []SessionEnd `json:"session_ends,omitempty"`
	// Prompt replaces the configured extraction prompt (rule `add` only).
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
	return []string{
		t.Rule, t.Scope.Project, t.Scope.Key(), strconv.FormatUint(t.Incarnation, 10),
		strconv.FormatUint(t.Range.From, 10), strconv.FormatUint(t.Range.To, 10), strconv.Itoa(t.Attempt),
	}
}

// Validate implements [Payload].
func (t TickIssued) Validate() error { return t.Batch.validate() }
