package events

import (
	"encoding/json"
	"reflect"
	"time"
)

// EffectCommitted is one commit of one fact scope: why it changed (the deltas)
// and what changed (the after-image of every row). AUDIT holds these, and what
// the stores hold can be copied from it without deciding anything.
type EffectCommitted struct {
	Header
	// Revision of the scope after this effect: 1, 2, 3… without a gap.
	Revision uint64 `json:"revision"`
	// Batch fields of the tick that led here; Rule is "command" for a command.
	Rule    string      `json:"rule"`
	As      string      `json:"as,omitempty"`
	Range   *Range      `json:"range,omitempty"`
	Cause   Cause       `json:"cause,omitempty"`
	Attempt int         `json:"attempt,omitempty"`
	Command *CommandRef `json:"command,omitempty"`
	// Extractor is the name@version of what read the range; empty for a command.
	Extractor string `json:"extractor,omitempty"`
	// Spent is what models charged for the batch, summed by model.
	Spent []Spent `json:"spent,omitempty"`
	// Watermark is the new watermark of (Rule, Scope); nil where none moves.
	Watermark *uint64 `json:"watermark,omitempty"`
	// More says that the scope had episodes above Watermark just before this effect: the
	// rule may be due again.
	More bool `json:"more,omitempty"`
	// Skipped is why the range, or the command, carried nothing, where it was buried.
	Skipped     string    `json:"skipped,omitempty"`
	CommittedAt time.Time `json:"committed_at"`

	Applied []Applied `json:"applied,omitempty"`

	Facts    []Fact   `json:"facts,omitempty"`    // newest version of each fact that changed
	Versions []Fact   `json:"versions,omitempty"` // earlier versions, as they became history
	Entities []Entity `json:"entities,omitempty"`
	Edges    []Edge   `json:"edges,omitempty"`
	Holds    []Hold   `json:"holds,omitempty"`
	Released []string `json:"released,omitempty"` // hold ids that left the buffer

	SessionEnds []SessionEnd `json:"session_ends,omitempty"`
	Outcomes    []Outcome    `json:"outcomes,omitempty"`
	Tally       Tally        `json:"tally"`
}

// Applied is one delta and the versions it led from and to, as {id}@{revision}
// addresses that this effect's Facts and Versions hold. Before is empty for an
// add, After for a noop.
type Applied struct {
	Delta  Delta  `json:"-"`
	FactID string `json:"fact_id,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// appliedWire is an Applied as it stands in JSON.
type appliedWire struct {
	Delta  *deltaWire `json:"delta"`
	FactID string     `json:"fact_id,omitempty"`
	Before string     `json:"before,omitempty"`
	After  string     `json:"after,omitempty"`
}

func (Applied) wireShape() reflect.Type { return reflect.TypeFor[appliedWire]() }

// MarshalJSON implements [json.Marshaler].
func (a Applied) MarshalJSON() ([]byte, error) {
	if a.Delta == nil {
		return nil, invalid("delta", "is required")
	}
	d := a.Delta.wire()
	return json.Marshal(appliedWire{Delta: &d, FactID: a.FactID, Before: a.Before, After: a.After})
}

// UnmarshalJSON implements [json.Unmarshaler]; the error of a delta that lacks
// a required field is a [*FieldError].
func (a *Applied) UnmarshalJSON(raw []byte) error {
	var w appliedWire
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	return a.from(w)
}

func (a *Applied) from(w appliedWire) error {
	if w.Delta == nil {
		return invalid("delta", "is required")
	}
	d, err := w.Delta.delta()
	if err != nil {
		return within("delta", err)
	}
	*a = Applied{Delta: d, FactID: w.FactID, Before: w.Before, After: w.After}
	return nil
}

// MarshalEffect is the JSON of an effect, as [json.Marshal] gives it but for the
// order of its members. It costs less: what a MarshalJSON returns is read once
// more by its caller.
func MarshalEffect(e EffectCommitted) ([]byte, error) {
	type members EffectCommitted
	applied := make([]appliedWire, len(e.Applied))
	deltas := make([]deltaWire, len(e.Applied))
	for i, a := range e.Applied {
		if a.Delta == nil {
			return nil, invalid("delta", "is required")
		}
		deltas[i] = a.Delta.wire()
		applied[i] = appliedWire{Delta: &deltas[i], FactID: a.FactID, Before: a.Before, After: a.After}
	}
	return json.Marshal(struct {
		*members
		Applied []appliedWire `json:"applied,omitempty"`
	}{(*members)(&e), applied})
}

// Tally is what an effect settles in the ledger.
type Tally struct {
	Episodes   int `json:"episodes"`   // of the range
	Candidates int `json:"candidates"` // Decided + Held + Dropped
	Decided    int `json:"decided"`
	Held       int `json:"held"`
	Dropped    int `json:"dropped"`
	Skipped    int `json:"skipped"` // episodes of a buried range
	// Settled tells what became of candidates that earlier effects counted as
	// Held: those of its rule's account are fewer by Decided + Dropped.
	Settled []Settlement `json:"settled,omitempty"`
}

// Settlement is what became of the candidates of one rule that left the held
// buffer.
type Settlement struct {
	Rule    string `json:"rule"`
	Decided int    `json:"decided"`
	Dropped int    `json:"dropped"`
}

// Kind implements [Payload].
func (EffectCommitted) Kind() Kind { return KindEffectCommitted }

// Validate implements [Payload].
func (e EffectCommitted) Validate() error {
	if err := e.Header.validate(); err != nil {
		return err
	}
	switch {
	case e.Revision == 0:
		return invalid("revision", "is required, from 1")
	case e.Rule == "":
		return invalid("rule", "is required")
	case e.CommittedAt.IsZero():
		return invalid("committed_at", "is required")
	}
	return nil
}

// Change is how an outcome names what happened to a memory.
type Change string

// The changes.
const (
	ChangeAdd    Change = "ADD"
	ChangeUpdate Change = "UPDATE"
	ChangeDelete Change = "DELETE"
	ChangeNone   Change = "NONE"
)

// Result is one delta in the form in which its caller receives it.
type Result struct {
	Event     Change `json:"event"`
	DeltaID   string `json:"delta_id"`
	FactID    string `json:"id,omitempty"`
	Revision  uint64 `json:"revision,omitempty"`
	Memory    string `json:"memory,omitempty"`
	OldMemory string `json:"old_memory,omitempty"`
	Reason    Reason `json:"reason"`
}

// Outcome is what came of the episodes, or the command, of one correlation id
// in one effect. A request's outcome is whole when its episodes are covered.
type Outcome struct {
	CorrelationID string   `json:"correlation_id"`
	Rule          string   `json:"rule"`
	EpisodeIDs    []string `json:"episode_ids,omitempty"`
	Revision      uint64   `json:"revision"`
	// Skipped is why nothing came of it: the code and reason of the dead letter.
	Skipped string `json:"skipped,omitempty"`
	// Conflict is set where a command met another revision than it named.
	Conflict string   `json:"conflict,omitempty"`
	Results  []Result `json:"results"`
	// Closed counts the facts that a command closed, those of omitted results
	// included.
	Closed int `json:"closed,omitempty"`
	// Omitted counts further results, of an outcome too large for its effect.
	Omitted int `json:"omitted,omitempty"`
}

// OutcomeAnnounced wakes a waiter; the store has the outcome itself.
type OutcomeAnnounced struct {
	Header
	Outcome Outcome `json:"outcome"`
}

// Kind implements [Payload].
func (OutcomeAnnounced) Kind() Kind { return KindOutcomeAnnounced }

// Validate implements [Payload].
func (o OutcomeAnnounced) Validate() error { return o.Header.validate() }

// FactReturned says which facts a read gave out, for reinforcement.
type FactReturned struct {
	Header
	FactIDs []string  `json:"fact_ids"`
	At      time.Time `json:"at"`
}

// Kind implements [Payload].
func (FactReturned) Kind() Kind { return KindFactReturned }

// Validate implements [Payload].
func (f FactReturned) Validate() error { return f.Header.validate() }
