package api

import "time"

// Hold is something that was said and waits before it changes what is known.
type Hold struct {
	Scope
	ID        string     `json:"id"`
	Why       string     `json:"why" doc:"churn: its fact changes too often."`
	FactID    string     `json:"fact_id,omitempty" doc:"The fact that it would change."`
	Text      string     `json:"text"`
	Subject   string     `json:"subject,omitempty"`
	Predicate string     `json:"predicate,omitempty"`
	Object    string     `json:"object,omitempty"`
	EventTime time.Time  `json:"event_time"`
	Sources   []string   `json:"source_episode_ids,omitempty"`
	Rule      string     `json:"rule,omitempty" doc:"The consolidation rule."`
	Count     uint64     `json:"count" doc:"How many were held in its place, itself included; only the newest is kept."`
	Since     time.Time  `json:"since" doc:"When the first of them was held."`
	HeldAt    time.Time  `json:"held_at"`
	Due       *time.Time `json:"due,omitempty" doc:"When it is decided on by itself."`
}

// HoldPage is a page of held candidates, oldest first.
type HoldPage struct {
	Holds []Hold `json:"holds"`
	Next  string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last."`
}
