package events

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// DeltaKind is how a delta changes what is known.
type DeltaKind string

// The kinds of deltas.
const (
	DeltaAdd    DeltaKind = "add"
	DeltaUpdate DeltaKind = "update"
	DeltaDelete DeltaKind = "delete"
	DeltaNoop   DeltaKind = "noop"
)

// Reason says why a delta was decided.
type Reason string

// The reasons of deltas.
const (
	ReasonNew            Reason = "new"
	ReasonDuplicate      Reason = "duplicate"
	ReasonContradiction  Reason = "contradiction"
	ReasonRefinement     Reason = "refinement"
	ReasonNegation       Reason = "negation"
	ReasonHeld           Reason = "held"
	ReasonHeldExpired    Reason = "held_expired"
	ReasonNotEmitted     Reason = "not_emitted"
	ReasonSafety         Reason = "safety"
	ReasonTransient      Reason = "transient"
	ReasonSensitive      Reason = "sensitive" // the project keeps nothing sensitive
	ReasonDismissed      Reason = "dismissed" // a caller took it out of the held buffer
	ReasonBelowThreshold Reason = "below_threshold"
	ReasonArchived       Reason = "archived"
	ReasonChurn          Reason = "churn"
	ReasonRestored       Reason = "restored"
	ReasonErased         Reason = "erased"
	ReasonRequested      Reason = "requested" // an API caller or metadata.intent asked for it
	ReasonConfirmed      Reason = "confirmed"
	ReasonChangedSince   Reason = "changed_since"
	ReasonFactConflict   Reason = "fact_conflict" // the candidate is in the dead letters
	ReasonUndone         Reason = "undone"        // the inverse of an earlier delta
	ReasonRated          Reason = "rated"         // a caller rated a fact or an answer
)

// Provenance is what every delta carries: where it came from, by which rule,
// when, and how sure.
type Provenance struct {
	// ID is hash(cause, index).
	ID          string `json:"id"`
	CandidateID string `json:"candidate_id,omitempty"`
	// SourceEpisodeIDs is non-empty unless RequestID is given.
	SourceEpisodeIDs []string `json:"source_episode_ids,omitempty"`
	// RequestID is the API request that made the delta.
	RequestID   string    `json:"request_id,omitempty"`
	PromotionTS time.Time `json:"promotion_ts"`
	RuleID      string    `json:"rule_id"`
	Confidence  float64   `json:"confidence"` // 0 to 1
	Reason      Reason    `json:"reason"`
	// DecidedBy is rules@v, llm:model or api:key.
	DecidedBy string `json:"decided_by"`
}

func (p Provenance) validate() error {
	switch {
	case p.ID == "":
		return invalid("id", "is required")
	case len(p.SourceEpisodeIDs) == 0 && p.RequestID == "":
		return invalid("source_episode_ids", "must not be empty")
	case slices.Contains(p.SourceEpisodeIDs, ""):
		return invalid("source_episode_ids", "holds an empty id")
	case p.PromotionTS.IsZero():
		return invalid("promotion_ts", "is required")
	case p.RuleID == "":
		return invalid("rule_id", "is required")
	case !(p.Confidence >= 0 && p.Confidence <= 1):
		return invalid("confidence", "%g is outside [0,1]", p.Confidence)
	case p.Reason == "":
		return invalid("reason", "is required")
	case p.DecidedBy == "":
		return invalid("decided_by", "is required")
	}
	return nil
}

// FactPayload is what an add or update brings: exactly one member is set.
type FactPayload struct {
	Fact   *Fact   `json:"fact,omitempty"`
	Entity *Entity `json:"entity,omitempty"`
	Edge   *Edge   `json:"edge,omitempty"`
	Hold   *Hold   `json:"hold,omitempty"`
}

func (p FactPayload) validate() error {
	n := 0
	for _, set := range []bool{p.Fact != nil, p.Entity != nil, p.Edge != nil, p.Hold != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return invalid("fact_payload", "needs exactly one of fact, entity, edge, hold")
	}
	return nil
}

// Delta is a typed change, with its provenance. It is one of [Add], [Update],
// [Delete] and [Noop]; each is made by its constructor or by decoding, and both
// refuse one that lacks a required field, naming the field.
type Delta interface {
	Kind() DeltaKind
	Provenance() Provenance
	wire() deltaWire
}

// deltaWire is the tagged union as it stands in JSON.
type deltaWire struct {
	Kind DeltaKind `json:"kind"`
	Provenance
	// Confidence shadows that of Provenance: 0 is a confidence, absence is none.
	Confidence *float64     `json:"confidence"`
	Payload    *FactPayload `json:"fact_payload,omitempty"`
	Replaces   []string     `json:"replaces,omitempty"`
	About      string       `json:"about,omitempty"`
}

// Add makes something known that was not.
type Add struct {
	provenance Provenance
	payload    FactPayload
}

// NewAdd returns an Add or a [*FieldError] naming what it lacks.
func NewAdd(p Provenance, payload FactPayload) (Add, error) {
	if err := p.validate(); err != nil {
		return Add{}, err
	}
	if err := payload.validate(); err != nil {
		return Add{}, err
	}
	return Add{p, payload}, nil
}

// Update gives the first of Replaces a new version and closes the others.
type Update struct {
	provenance Provenance
	payload    FactPayload
	replaces   []string
}

// NewUpdate returns an Update or a [*FieldError] naming what it lacks.
func NewUpdate(p Provenance, payload FactPayload, replaces []string) (Update, error) {
	if err := p.validate(); err != nil {
		return Update{}, err
	}
	if err := payload.validate(); err != nil {
		return Update{}, err
	}
	if err := validateReplaces(replaces); err != nil {
		return Update{}, err
	}
	return Update{p, payload, replaces}, nil
}

// Delete closes facts; it takes no bytes away.
type Delete struct {
	provenance Provenance
	replaces   []string
}

// NewDelete returns a Delete or a [*FieldError] naming what it lacks.
func NewDelete(p Provenance, replaces []string) (Delete, error) {
	if err := p.validate(); err != nil {
		return Delete{}, err
	}
	if err := validateReplaces(replaces); err != nil {
		return Delete{}, err
	}
	return Delete{p, replaces}, nil
}

// Noop records that a candidate changed nothing, and why. Where it repeats a
// known fact, About is that fact's id, and its sources are added to the fact.
type Noop struct {
	provenance Provenance
	about      string
}

// NewNoop returns a Noop or a [*FieldError] naming what it lacks.
func NewNoop(p Provenance, about string) (Noop, error) {
	if err := p.validate(); err != nil {
		return Noop{}, err
	}
	return Noop{p, about}, nil
}

func validateReplaces(ids []string) error {
	if len(ids) == 0 || slices.Contains(ids, "") {
		return invalid("replaces", "must be a non-empty list of ids")
	}
	return nil
}

// Kind implements [Delta].
func (Add) Kind() DeltaKind { return DeltaAdd }

// Kind implements [Delta].
func (Update) Kind() DeltaKind { return DeltaUpdate }

// Kind implements [Delta].
func (Delete) Kind() DeltaKind { return DeltaDelete }

// Kind implements [Delta].
func (Noop) Kind() DeltaKind { return DeltaNoop }

// Provenance implements [Delta].
func (d Add) Provenance() Provenance { return d.provenance }

// Provenance implements [Delta].
func (d Update) Provenance() Provenance { return d.provenance }

// Provenance implements [Delta].
func (d Delete) Provenance() Provenance { return d.provenance }

// Provenance implements [Delta].
func (d Noop) Provenance() Provenance { return d.provenance }

// Payload is what becomes known.
func (d Add) Payload() FactPayload { return d.payload }

// Payload is what becomes known in place of the replaced.
func (d Update) Payload() FactPayload { return d.payload }

// Replaces lists the ids replaced, the survivor first; never empty.
func (d Update) Replaces() []string { return d.replaces }

// Replaces lists the ids closed; never empty.
func (d Delete) Replaces() []string { return d.replaces }

// About is the id of the fact that was repeated, or empty.
func (d Noop) About() string { return d.about }

func (d Add) wire() deltaWire {
	return deltaWire{Kind: DeltaAdd, Provenance: d.provenance, Confidence: &d.provenance.Confidence, Payload: &d.payload}
}

func (d Update) wire() deltaWire {
	return deltaWire{Kind: DeltaUpdate, Provenance: d.provenance, Confidence: &d.provenance.Confidence, Payload: &d.payload, Replaces: d.replaces}
}

func (d Delete) wire() deltaWire {
	return deltaWire{Kind: DeltaDelete, Provenance: d.provenance, Confidence: &d.provenance.Confidence, Replaces: d.replaces}
}

func (d Noop) wire() deltaWire {
	return deltaWire{Kind: DeltaNoop, Provenance: d.provenance, Confidence: &d.provenance.Confidence, About: d.about}
}

// Deltas is a list of deltas with the JSON form of the tagged union.
type Deltas []Delta

// MarshalJSON implements [json.Marshaler].
func (ds Deltas) MarshalJSON() ([]byte, error) {
	out := make([]deltaWire, len(ds))
	for i, d := range ds {
		if d == nil {
			return nil, invalid("["+strconv.Itoa(i)+"]", "is no delta")
		}
		out[i] = d.wire()
	}
	return json.Marshal(out)
}

func (Deltas) wireShape() reflect.Type { return reflect.TypeFor[[]deltaWire]() }

// UnmarshalJSON implements [json.Unmarshaler]; the error of a delta that lacks
// a required field is a [*FieldError].
func (ds *Deltas) UnmarshalJSON(raw []byte) error {
	var list []deltaWire
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	return ds.from(list)
}

func (ds *Deltas) from(list []deltaWire) error {
	if list == nil {
		*ds = nil
		return nil
	}
	out := make(Deltas, len(list))
	for i, w := range list {
		d, err := w.delta()
		if err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
		out[i] = d
	}
	*ds = out
	return nil
}

func (w deltaWire) delta() (Delta, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if w.Confidence == nil {
		return nil, invalid("confidence", "is required")
	}
	w.Provenance.Confidence = *w.Confidence
	payload := FactPayload{}
	if w.Payload != nil {
		payload = *w.Payload
	}
	switch w.Kind {
	case DeltaAdd:
		return NewAdd(w.Provenance, payload)
	case DeltaUpdate:
		return NewUpdate(w.Provenance, payload, w.Replaces)
	case DeltaDelete:
		return NewDelete(w.Provenance, w.Replaces)
	}
	return NewNoop(w.Provenance, w.About)
}

// check refuses an unknown kind of delta, and a member that the kind of delta has no use for: it would be
// lost when the delta is written again.
func (w deltaWire) check() error {
	switch w.Kind {
	case DeltaAdd, DeltaUpdate, DeltaDelete, DeltaNoop:
	default:
		return invalid("kind", "%q is none of add, update, delete, noop", clip(string(w.Kind)))
	}
	switch {
	case w.Payload != nil && (w.Kind == DeltaDelete || w.Kind == DeltaNoop):
		return invalid("fact_payload", "has no place in a delta of kind %s", w.Kind)
	case len(w.Replaces) > 0 && (w.Kind == DeltaAdd || w.Kind == DeltaNoop):
		return invalid("replaces", "has no place in a delta of kind %s", w.Kind)
	case w.About != "" && w.Kind != DeltaNoop:
		return invalid("about", "has no place in a delta of kind %s", clip(string(w.Kind)))
	}
	return nil
}
