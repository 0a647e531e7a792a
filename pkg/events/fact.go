package events

import "time"

// SourceType says what a fact came from.
type SourceType string

// The source types.
const (
	SourceConversation  SourceType = "conversation"
	SourceToolResult    SourceType = "tool_result"
	SourceExtraction    SourceType = "extraction"
	SourceConsolidation SourceType = "consolidation"
	SourceAPI           SourceType = "api"
)

// RoleOperator is the source role of a fact that an API caller wrote.
const RoleOperator Role = "operator"

// Fact is one version of a fact; the newest is the fact itself. Its scope is that
// of its message. Vectors and access statistics are columns of the store and never
// on the wire.
type Fact struct {
	ID          string         `json:"id"`
	Revision    uint64         `json:"revision"` // from 1; {id}@{revision} addresses a version
	Kind        FactKind       `json:"kind"`
	Category    string         `json:"category"`
	Subject     string         `json:"subject,omitempty"`
	Predicate   string         `json:"predicate,omitempty"`
	Object      string         `json:"object,omitempty"`
	Text        string         `json:"text"`
	Hash        string         `json:"hash"` // md5 hex of Text
	Cardinality Cardinality    `json:"cardinality,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
	Sensitivity Sensitivity    `json:"sensitivity,omitempty"`
	// Confidence is the base confidence c₀ in [0,1]; DecayRate λ per day^0.8.
	Confidence float64    `json:"confidence"`
	DecayRate  float64    `json:"decay_rate"`
	Confirmed  bool       `json:"confirmed,omitempty"`
	EventTime  time.Time  `json:"event_time"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	ValidFrom  time.Time  `json:"valid_from"`
	ValidUntil *time.Time `json:"valid_until,omitempty"` // exclusive
	ArchivedAt *time.Time `json:"archived_at,omitempty"`
	// OwnEnd is the ValidUntil that a closed fact had before a delta brought it forward.
	OwnEnd *time.Time `json:"own_end,omitempty"`
	// RestoredAt is when a caller last brought the fact back: statements from before then
	// do not end it.
	RestoredAt *time.Time `json:"restored_at,omitempty"`

	SourceType       SourceType `json:"source_type"`
	SourceRole       Role       `json:"source_role"`
	SessionIDs       []string   `json:"session_ids,omitempty"`
	SourceEpisodeIDs []string   `json:"source_episode_ids,omitempty"`
	EvidenceQuote    string     `json:"evidence_quote,omitempty"`
	RuleID           string     `json:"rule_id"`
	Supersedes       []string   `json:"supersedes,omitempty"`    // version addresses
	SupersededBy     string     `json:"superseded_by,omitempty"` // version address
	EntityIDs        []string   `json:"entity_ids,omitempty"`
}

// EntityType is what kind of thing an entity is.
type EntityType string

// The entity types.
const (
	EntityPerson       EntityType = "person"
	EntityProject      EntityType = "project"
	EntityOrganization EntityType = "organization"
	EntityPlace        EntityType = "place"
	EntityConcept      EntityType = "concept"
	EntityTool         EntityType = "tool"
	EntityEvent        EntityType = "event"
	EntityProduct      EntityType = "product"
)

// Entity is a person or a thing that facts of one fact scope mention.
type Entity struct {
	ID            string         `json:"id"`
	CanonicalName string         `json:"canonical_name"`
	Type          EntityType     `json:"type"`
	Aliases       []string       `json:"aliases,omitempty"`
	Summary       string         `json:"summary,omitempty"`
	FirstSeen     time.Time      `json:"first_seen"`
	LastUpdated   time.Time      `json:"last_updated"`
	MentionCount  uint64         `json:"mention_count"`
	Attributes    map[string]any `json:"attributes,omitempty"`
}

// EdgeType is what an edge means.
type EdgeType string

// The materialised edge types.
const (
	EdgeSupersedes EdgeType = "supersedes"
	EdgeRelation   EdgeType = "relation"
	EdgeCausal     EdgeType = "causal"
)

// Edge relates two nodes of one fact scope and rests on its evidence.
type Edge struct {
	ID         string     `json:"id"`
	SourceID   string     `json:"source_id"`
	TargetID   string     `json:"target_id"`
	Type       EdgeType   `json:"type"`
	Predicate  string     `json:"predicate,omitempty"`
	Weight     float64    `json:"weight"`
	Confidence float64    `json:"confidence"`
	Evidence   []string   `json:"evidence"` // fact or episode ids
	ValidFrom  time.Time  `json:"valid_from"`
	ValidUntil *time.Time `json:"valid_until,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
}

// Hold is a candidate that waits for support in the held buffer.
type Hold struct {
	ID        string    `json:"id"` // the candidate's
	Candidate Candidate `json:"candidate"`
	HeldAt    time.Time `json:"held_at"`
	Why       string    `json:"why"` // churn, sensitive, implicit, hedged, …
	// Rule is the consolidation rule in whose account the candidate is held; empty
	// for one that was settled there before it was held.
	Rule string `json:"rule,omitempty"`
	// FactID is the fact that the candidate would have changed.
	FactID string `json:"fact_id,omitempty"`
	// Count is how many candidates were held in this one's place, itself
	// included, and Since when the first of them was: only the newest is kept.
	Count uint64    `json:"count,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Distrust is that of a mark of a quarantine.
	Distrust *Distrust `json:"distrust,omitempty"`
	// Due is when the candidate is decided on again by itself; nil for never.
	Due *time.Time `json:"due,omitempty"`
}
