package api

import "encoding/json"

// ContextQuery asks for a block of facts and episodes for a system prompt.
type ContextQuery struct {
	Selector
	Text          string          `json:"text,omitempty" doc:"The message or question to assemble for; required."`
	Query         string          `json:"query,omitempty" doc:"Another name for text; give one of the two."`
	Budget        int             `json:"budget,omitempty" minimum:"0" maximum:"100000" doc:"Estimated tokens at most; 1000 or 3000 by complexity unless given."`
	Kinds         []string        `json:"kinds,omitempty" doc:"Kinds of facts; all unless given."`
	Filters       json.RawMessage `json:"filters,omitempty" doc:"As in a search."`
	Entity        string          `json:"entity,omitempty" doc:"As in a search."`
	EpisodeWindow string          `json:"episode_window,omitempty" doc:"Only episodes of this time before now; 30d unless given."`
	FirstTurn     bool            `json:"first_turn,omitempty" doc:"Include the latest session summary. It is included as well where the session that is named has no episodes."`
	Now           *Instant        `json:"now,omitempty" doc:"As in a search."`
	At            string          `json:"at,omitempty" doc:"Read-your-writes token of a write that must be visible."`
}

// Context is a block of facts and episodes.
type Context struct {
	Context    string   `json:"context" doc:"Markdown; each line ends in the id of its fact or episode."`
	Tokens     int      `json:"tokens" doc:"Estimated; those of o200k_base or up to half more."`
	IDs        []string `json:"ids" doc:"The facts, episodes and held candidates of the block, in its order."`
	Complexity string   `json:"complexity" enum:"simple,complex"`
	Degraded   []string `json:"degraded,omitempty" doc:"Channels that failed or came too late."`
	Stale      bool     `json:"stale,omitempty" doc:"The write named by at was not visible within 2 s."`
}
