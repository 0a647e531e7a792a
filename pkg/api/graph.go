package api

import "time"

// EntityPage is a page of entities, by name and type.
type EntityPage struct {
	Entities []Entity `json:"entities"`
	Next     string   `json:"next,omitempty" doc:"Cursor of the next page; absent on the last."`
}

// EntityInfo is what is known of an entity.
type EntityInfo struct {
	Entity
	Description string     `json:"description" doc:"A few sentences, made from the rest."`
	Facts       []Fact     `json:"facts" doc:"Facts that are valid now and mention it, newest first; 20 at most."`
	Relations   []Relation `json:"relations" doc:"Valid relations of its own, newest first; 50 at most."`
}

// Relation is an edge between two entities.
type Relation struct {
	Source     string     `json:"source" doc:"Name of the entity that the relation starts from."`
	Predicate  string     `json:"predicate"`
	Target     string     `json:"target" doc:"Name of the other entity."`
	Type       string     `json:"type" enum:"relation,causal"`
	Depth      int        `json:"depth" doc:"Relations from the entity asked for; 1 for its own."`
	Confidence float64    `json:"confidence"`
	ValidFrom  time.Time  `json:"valid_from"`
	ValidUntil *time.Time `json:"valid_until,omitempty"`
	Evidence   []string   `json:"evidence" doc:"Ids of the facts or episodes that it rests on."`
}

// Relations are those around an entity, nearest first.
type Relations struct {
	Relations []Relation `json:"relations"`
}

// Timeline is what was true of an entity.
type Timeline struct {
	Entity
	Facts []Fact `json:"facts" doc:"Versions of facts that mention it and held for some time, by valid_from, oldest first. Their confidence is that before decay."`
}

// Stats count what is known now.
type Stats struct {
	Facts     uint64            `json:"facts" doc:"Facts that are valid now."`
	Kinds     map[string]uint64 `json:"kinds" doc:"Of these by kind."`
	Orphans   uint64            `json:"orphans" doc:"Of these those that mention no entity."`
	Entities  uint64            `json:"entities"`
	Types     map[string]uint64 `json:"entity_types" doc:"Entities by type."`
	Relations uint64            `json:"relations" doc:"Relations between entities that are valid now."`
	Edges     map[string]uint64 `json:"edge_types" doc:"Of these by type."`
}
