package api

import (
	"encoding/json"
	"errors"
	"time"
)

// Search asks for facts, episodes or both.
type Search struct {
	Selector
	Text    string          `json:"text,omitempty" doc:"What to look for; required."`
	Query   string          `json:"query,omitempty" doc:"Another name for text; give one of the two."`
	Limit   int             `json:"limit,omitempty" minimum:"0" maximum:"1000" doc:"5 or 20 by complexity unless given."`
	Types   []string        `json:"types,omitempty" doc:"fact, episode; both unless given."`
	Kinds   []string        `json:"kinds,omitempty" doc:"Kinds of facts; all unless given."`
	Filters json.RawMessage `json:"filters,omitempty" doc:"A filter: {field, operator, value}, {AND: […]}, {OR: […]} or {NOT: …}. Operators: eq, ne, gt, gte, lt, lte, in, nin, contains, icontains, exists. Fields: those of facts and episodes, and metadata.<path>."`
	Entity  string          `json:"entity,omitempty" doc:"Only facts that mention the entity of that name or alias, and the episodes that they came from."`
	// EpisodeWindow bounds how old episodes may be.
	EpisodeWindow string   `json:"episode_window,omitempty" doc:"Only episodes of this time before now, in days (30d) or as a duration (12h); facts of any time."`
	After         Bound    `json:"after,omitempty" doc:"Exclusive; RFC 3339, YYYY-MM-DD, an ISO week (2026-W19), or a name: last_week, last_month, yesterday, today."`
	Before        Bound    `json:"before,omitempty" doc:"Exclusive; as after. A name means its first moment."`
	ValidAt       *Instant `json:"valid_at,omitempty" doc:"What was true then, in the version of then; now unless given."`
	Now           *Instant `json:"now,omitempty" doc:"What dates and sessions in the text count from, in its zone; the clock unless given."`
	Cursor        string   `json:"cursor,omitempty" doc:"Continue where the previous page ended; the other members as in the previous request."`
	MinScore      *float64 `json:"min_score,omitempty" minimum:"0" maximum:"1" doc:"Leave out what scores less; query.search.min_score unless given."`
	Explain       bool     `json:"explain,omitempty" doc:"Add each channel's rank and score."`
	At            string   `json:"at,omitempty" doc:"Read-your-writes token of a write that must be visible."`
}

// Hit is one fact or episode found.
type Hit struct {
	Type     string             `json:"type" enum:"fact,episode"`
	ID       string             `json:"id"`
	Score    float64            `json:"score" minimum:"0" maximum:"1" doc:"The share of right answers among hits of this score, as measured on labelled conversations."`
	Text     string             `json:"text"`
	Fact     *Fact              `json:"fact,omitempty"`
	Episode  *Episode           `json:"episode,omitempty"`
	LentBy   []string           `json:"lent_by,omitempty" doc:"Facts whose match counts for the episode that they came from."`
	Channels map[string]Channel `json:"channels,omitempty" doc:"With explain: where each channel ranked it."`
	Features map[string]float64 `json:"features,omitempty" doc:"With explain: what each feature adds to the score before that is brought to [0,1]."`
}

// Channel is how one channel ranked a hit.
type Channel struct {
	Rank  int     `json:"rank"`
	Score float64 `json:"score"`
}

// Found is the answer to a search, best first.
type Found struct {
	Results    []Hit    `json:"results"`
	Complexity string   `json:"complexity" enum:"simple,complex"`
	Next       string   `json:"next,omitempty" doc:"Cursor of the next page. A question about a time alone is answered with all that was said then, in order, page after page."`
	Degraded   []string `json:"degraded,omitempty" doc:"Channels that failed or came too late."`
	Stale      bool     `json:"stale,omitempty" doc:"The write named by at was not visible within 2 s."`
}

// Bound is RFC 3339, a bare date, an ISO week, or the name of a time, which means
// its first moment; counted from the question's now.
type Bound string

// BoundAt is the bound of an instant.
func BoundAt(at time.Time) Bound { return Bound(at.Format(time.RFC3339Nano)) }

// Instant reads RFC 3339 or a bare date, which means its first moment in UTC.
type Instant struct{ time.Time }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (i *Instant) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		at, err = time.Parse(time.DateOnly, string(text))
	}
	i.Time = at
	return err
}

// UnmarshalJSON implements [json.Unmarshaler]; that of the embedded time knows
// no bare date.
func (i *Instant) UnmarshalJSON(raw []byte) error {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return err
	}
	if err := i.UnmarshalText([]byte(*text)); err != nil {
		return errors.New("is neither RFC 3339 nor YYYY-MM-DD")
	}
	return nil
}
