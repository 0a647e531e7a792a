package events

import "time"

// FactKind is what kind of knowledge a fact is.
type FactKind string

// The kinds of facts.
const (
	FactSemantic   FactKind = "semantic"   // durable facts
	FactProcedural FactKind = "procedural" // instructions and how-to for the agent
	FactOpinion    FactKind = "opinion"
	FactSummary    FactKind = "summary"  // a session's arc
	FactRelation   FactKind = "relation" // an edge, e.g. causal
)

// Valid reports whether k is one of the kinds above.
func (k FactKind) Valid() bool {
	switch k {
	case FactSemantic, FactProcedural, FactOpinion, FactSummary, FactRelation:
		return true
	}
	return false
}

// Sensitivity says how carefully a candidate must be treated.
type Sensitivity string

// The sensitivities; diet is personal, allergies and health are sensitive.
const (
	SensitivityNone      Sensitivity = "none"
	SensitivityPersonal  Sensitivity = "personal"
	SensitivitySensitive Sensitivity = "sensitive"
)

// Cardinality says how many values a (subject, predicate) may have at a time.
type Cardinality string

// The cardinalities.
const (
	One  Cardinality = "one"
	Many Cardinality = "many"
)

// MaxRetracts bounds the members of Retracts of a candidate: each costs lookups.
const MaxRetracts = 64

// Candidate is what an extractor proposes.
type Candidate struct {
	// ID is hash(rule, extractor, source episode ids, position among the
	// candidates of its last source episode).
	ID        string   `json:"id"`
	Kind      FactKind `json:"kind"`
	Category  string   `json:"category"`
	Subject   string   `json:"subject"`
	Predicate string   `json:"predicate"`
	Object    string   `json:"object"`
	// Text is one self-contained third-person sentence.
	Text string `json:"text"`
	// EvidenceQuote stands verbatim in one of the source episodes.
	EvidenceQuote string      `json:"evidence_quote"`
	Confidence    float64     `json:"confidence"` // 0 to 1
	Explicit      bool        `json:"explicit"`
	Sensitivity   Sensitivity `json:"sensitivity"`
	Cardinality   Cardinality `json:"cardinality"`
	// Negated means that the triple is said to hold no longer (or not at all).
	Negated bool `json:"negated,omitempty"`
	// Hedged ("maybe", "I think I might") waits for repetition.
	Hedged bool `json:"hedged,omitempty"`
	// Transient states ("I'm hungry now") are not remembered.
	Transient bool `json:"transient,omitempty"`
	// Unsafe candidates ask to bypass a safety check.
	Unsafe bool `json:"unsafe,omitempty"`
	// Retracts says that facts with this (subject, predicate), and this object
	// where it is not empty, end with what this candidate states ("I've left
	// Fenwick, I'm with Tarn": the new employer retracts the old).
	// A triple without a predicate names the object of whatever fact holds it. There are
	// at most 64, with a subject, and a predicate or an object.
	Retracts []Triple `json:"retracts,omitempty"`
	// Moves means that the object takes the place of the retracted one, in the fact
	// that holds that one, under any predicate ("we swapped the Corsa for a Skoda").
	// Predicate, which may be empty, counts only where no fact holds the retracted one. It
	// needs an object and excludes Negated; it changes nothing unless a member of Retracts
	// has no predicate.
	Moves bool `json:"moves,omitempty"`

	SourceEpisodeIDs []string `json:"source_episode_ids"`
	// Ordinal is that of the last source episode: the order of decisions.
	Ordinal    uint64         `json:"ordinal"`
	SessionIDs []string       `json:"session_ids,omitempty"`
	SourceRole Role           `json:"source_role"`
	EventTime  time.Time      `json:"event_time"`
	ValidFrom  *time.Time     `json:"valid_from,omitempty"`
	ValidUntil *time.Time     `json:"valid_until,omitempty"`
	Entities   []Mention      `json:"entities,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	// Extractor is name@version; RuleID the pattern, key or prompt that matched.
	Extractor string `json:"extractor"`
	RuleID    string `json:"rule_id"`
	// Intent and Replaces come from the episode's metadata.
	Intent   string   `json:"intent,omitempty"`
	Replaces []string `json:"replaces,omitempty"`
}

// Triple is what a fact states.
type Triple struct {
	Subject   string `json:"subject"`
	Predicate string `json:"predicate"`
	Object    string `json:"object,omitempty"`
}

// Mention is an entity that a candidate names.
type Mention struct {
	Name    string     `json:"name"`
	Type    EntityType `json:"type"`
	Aliases []string   `json:"aliases,omitempty"`
}

// EpisodeRef is what later stages need to know of an episode in a range.
type EpisodeRef struct {
	ID            string `json:"id"`
	Ordinal       uint64 `json:"ordinal"`
	Session       string `json:"session,omitempty"`
	CorrelationID string `json:"correlation_id,omitempty"`
	SourceNode    string `json:"source_node,omitempty"`
}

// CandidatesExtracted carries what a range gave, the whole way even when it is
// empty, because its watermark moves only at the commit.
type CandidatesExtracted struct {
	Batch
	SessionEnds []SessionEnd `json:"session_ends,omitempty"`
	Episodes    []EpisodeRef `json:"episodes,omitempty"`
	Candidates  []Candidate  `json:"candidates,omitempty"`
	// Traceparent is the trace that the batch goes on with: that of its newest
	// episode, whatever woke the scheduler. It travels in the envelope.
	Traceparent string `json:"-"`
}

// Continues implements [Continued].
func (c CandidatesExtracted) Continues() string { return c.Traceparent }

// Kind implements [Payload].
func (CandidatesExtracted) Kind() Kind { return KindCandidatesExtracted }

// Validate implements [Payload].
func (c CandidatesExtracted) Validate() error { return c.Batch.validate() }
