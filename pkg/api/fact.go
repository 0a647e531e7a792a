package api

import "time"

// Fact is one version of a fact.
type Fact struct {
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	Scope
	Kind             string         `json:"kind"`
	Category         string         `json:"category"`
	Subject          string         `json:"subject,omitempty"`
	Predicate        string         `json:"predicate,omitempty"`
	Object           string         `json:"object,omitempty"`
	Text             string         `json:"text"`
	Hash             string         `json:"hash" doc:"md5 of the text, in hex."`
	Metadata         map[string]any `json:"metadata,omitempty"`
	Confidence       float64        `json:"confidence" doc:"Now, after decay."`
	Confirmed        bool           `json:"confirmed,omitempty"`
	Sensitivity      string         `json:"sensitivity,omitempty"`
	EventTime        time.Time      `json:"event_time"`
	CreatedAt        time.Time      `json:"created_at"`
	UpdatedAt        time.Time      `json:"updated_at"`
	ValidFrom        time.Time      `json:"valid_from"`
	ValidUntil       *time.Time     `json:"valid_until,omitempty"`
	ArchivedAt       *time.Time     `json:"archived_at,omitempty"`
	SourceType       string         `json:"source_type"`
	SourceRole       string         `json:"source_role"`
	SessionIDs       []string       `json:"session_ids,omitempty"`
	SourceEpisodeIDs []string       `json:"source_episode_ids,omitempty"`
	EvidenceQuote    string         `json:"evidence_quote,omitempty"`
	RuleID           string         `json:"rule_id"`
	Supersedes       []string       `json:"supersedes,omitempty"`
	SupersededBy     string         `json:"superseded_by,omitempty"`
	EntityIDs        []string       `json:"entity_ids,omitempty"`
	AccessCount      uint64         `json:"access_count"`
	LastAccessed     time.Time      `json:"last_accessed"`
}

// FactPage is a page of facts, newest first.
type FactPage struct {
	Facts []Fact `json:"facts"`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last."`
	Stale bool   `json:"stale,omitempty" doc:"The write named by at was not visible within 2 s."`
	// Warnings say why facts may be missing.
	Warnings []string `json:"warnings,omitempty" doc:"Why facts may be missing: no rule pack reads the language of the user."`
}

// WeakFact is a fact that is about to be forgotten: its confidence is below 0.3, or it
// is due for pruning within 7 days.
type WeakFact struct {
	Fact
	PrunedAt *time.Time `json:"pruned_at,omitempty" doc:"When it is due for pruning, unless it is read; absent where it never is."`
}

// WeakPage is a page of weak facts, newest first. It may hold fewer than the limit and
// still name a next page.
type WeakPage struct {
	Facts []WeakFact `json:"facts"`
	Next  string     `json:"next,omitempty" doc:"Cursor of the next page; absent on the last."`
}

// Remember states a fact.
type Remember struct {
	Scope
	Text       string         `json:"text" minLength:"1" doc:"One self-contained sentence."`
	Kind       string         `json:"kind,omitempty" enum:"semantic,procedural,opinion" default:"semantic"`
	Category   string         `json:"category,omitempty"`
	Subject    string         `json:"subject,omitempty"`
	Predicate  string         `json:"predicate,omitempty"`
	Object     string         `json:"object,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Confidence *float64       `json:"confidence,omitempty" minimum:"0" maximum:"1"`
	EventTime  *time.Time     `json:"event_time,omitempty"`
	ValidUntil *time.Time     `json:"valid_until,omitempty"`
}

// Correct gives a fact a new version. Omitted members stay as they are.
type Correct struct {
	Text      string         `json:"text" minLength:"1"`
	Category  string         `json:"category,omitempty"`
	Object    string         `json:"object,omitempty"`
	Metadata  map[string]any `json:"metadata,omitempty"`
	EventTime *time.Time     `json:"event_time,omitempty"`
}

// Change is one record of the audit trail.
type Change struct {
	Scope
	Revision      uint64    `json:"scope_revision"`
	Index         int       `json:"index"`
	Sequence      uint64    `json:"sequence"`
	DeltaID       string    `json:"delta_id"`
	Event         string    `json:"event" enum:"ADD,UPDATE,DELETE,NONE"`
	Reason        string    `json:"reason"`
	Rule          string    `json:"rule" doc:"The consolidation rule."`
	RuleID        string    `json:"rule_id" doc:"The pattern, key or prompt that matched."`
	DecidedBy     string    `json:"decided_by"`
	Confidence    float64   `json:"confidence"`
	Before        *Fact     `json:"before,omitempty"`
	After         *Fact     `json:"after,omitempty"`
	OldMemory     string    `json:"old_memory,omitempty"`
	NewMemory     string    `json:"new_memory,omitempty"`
	Sources       []string  `json:"source_episode_ids,omitempty"`
	RequestID     string    `json:"request_id,omitempty"`
	CorrelationID string    `json:"correlation_id,omitempty"`
	EventTime     time.Time `json:"event_time,omitzero"`
	AppliedAt     time.Time `json:"applied_at"`
}

// History is all that happened to a fact, oldest first.
type History struct {
	FactID  string   `json:"fact_id"`
	Changes []Change `json:"changes"`
}

// Explanation is why a fact is known.
type Explanation struct {
	Fact     Fact      `json:"fact"`
	Episodes []Episode `json:"episodes" doc:"What was said, by ordinal."`
	Quote    string    `json:"quote,omitempty"`
	// Decisions begin with the one that added the fact. Those that changed nothing
	// have the event NONE.
	Decisions []Change `json:"decisions" doc:"All decisions about the fact, oldest first."`
	Versions  []Fact   `json:"versions" doc:"Earlier versions, oldest first."`
	Entities  []Entity `json:"entities"`
}

// Entity is a person or a thing that facts mention.
type Entity struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Type         string    `json:"type"`
	Aliases      []string  `json:"aliases,omitempty"`
	Summary      string    `json:"summary,omitempty" doc:"A few sentences, made by maintenance of an entity that is mentioned three times."`
	MentionCount uint64    `json:"mention_count"`
	FirstSeen    time.Time `json:"first_seen"`
	LastSeen     time.Time `json:"last_seen,omitzero"`
}
