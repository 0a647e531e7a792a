package api

// Rule is a consolidation rule: its cadence, its extractor and decider, and the kinds
// of facts that it may emit.
type Rule struct {
	ID         string   `json:"id"`
	Enabled    bool     `json:"enabled"`
	Every      uint64   `json:"every,omitempty" doc:"Due after as many episodes of a fact scope."`
	Cron       string   `json:"cron,omitempty" doc:"Due when this fires, in the time zone tz."`
	TZ         string   `json:"tz,omitempty" doc:"UTC unless given."`
	SessionEnd bool     `json:"session_end,omitempty" doc:"Due when a session ends."`
	Request    bool     `json:"request,omitempty" doc:"For messages that ask for a tick of their own."`
	When       string   `json:"when,omitempty" doc:"The episodes that it reads, as a WHERE fragment; all unless given."`
	Then       []string `json:"then,omitempty" doc:"The kinds of facts that it may emit; all unless given."`
	Extractor  string   `json:"extractor,omitempty"`
	Decider    string   `json:"decider,omitempty"`
	Prompt     string   `json:"prompt,omitempty"`
	Decision   string   `json:"decision_prompt,omitempty"`
	Streaming  bool     `json:"streaming,omitempty" doc:"A language model may read every message by itself."`
	Steps      []string `json:"steps,omitempty" doc:"Maintenance: such a rule reads no episodes."`
	CommitOnly bool     `json:"commit_only,omitempty" doc:"What would be held is left to the other rules."`
}

// RuleList is the rules of an installation.
type RuleList struct {
	Rules []Rule `json:"rules"`
}

// RunRule names the scope in which a rule is to run now.
type RunRule struct {
	Scope
	Wait    bool    `json:"wait,omitempty" doc:"Answer when it is done."`
	Timeout float64 `json:"timeout,omitempty" doc:"Seconds to wait for it."`
}

// RuleRun is a run of a rule in one fact scope, over the episodes with ordinals above
// From, up to To.
type RuleRun struct {
	Scope
	Rule   string `json:"rule"`
	Status string `json:"status" doc:"accepted, done, or idle where nothing was pending."`
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	At     string `json:"at,omitempty" doc:"Token to read what the run changes; a run of maintenance has none."`
	// Facts counts those that a rule of maintenance works on; it has no range.
	Facts int `json:"facts,omitempty"`
	// Entities counts those that it summarises.
	Entities int `json:"entities,omitempty"`
	// Remaining counts the episodes that further runs have to read.
	Remaining uint64 `json:"remaining"`
	// More says whether another run may have work: episodes, or facts that are due.
	More bool `json:"more" doc:"Whether another run may have work."`
}

// Rehearsal is what a run would decide now. Nothing of it is applied.
type Rehearsal struct {
	RuleRun
	Candidates int         `json:"candidates" doc:"How many the extractor found."`
	Deltas     []Rehearsed `json:"deltas"`
}

// Rehearsed is a delta that a run would decide.
type Rehearsed struct {
	Event      string   `json:"event" doc:"ADD, UPDATE, DELETE or NONE."`
	Reason     string   `json:"reason"`
	ID         string   `json:"id,omitempty" doc:"The fact that it would make or change."`
	Memory     string   `json:"memory,omitempty"`
	Replaces   []string `json:"replaces,omitempty"`
	Confidence float64  `json:"confidence"`
	Sources    []string `json:"source_episode_ids,omitempty"`
	DecidedBy  string   `json:"decided_by"`
}
