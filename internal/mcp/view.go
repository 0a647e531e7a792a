package mcp

import (
	"math"
	"time"

	"palimpsest/pkg/api"
)

// Fact is a fact as a model needs it: less than the native API returns, because
// each word of it costs the model a token.
type Fact struct {
	ID         string    `json:"id" jsonschema:"Give it to correct_fact, confirm_fact, forget or explain_fact."`
	Text       string    `json:"text"`
	Kind       string    `json:"kind" jsonschema:"semantic, procedural, opinion, summary or relation."`
	Category   string    `json:"category,omitempty"`
	Subject    string    `json:"subject,omitempty"`
	Predicate  string    `json:"predicate,omitempty"`
	Object     string    `json:"object,omitempty"`
	Confidence float64   `json:"confidence" jsonschema:"0 to 1, now."`
	Confirmed  bool      `json:"confirmed,omitempty" jsonschema:"True if the fact does not decay."`
	Revision   uint64    `json:"revision"`
	User       string    `json:"user,omitempty"`
	Agent      string    `json:"agent,omitempty"`
	Since      time.Time `json:"since" jsonschema:"When it began to be true."`
	Until      time.Time `json:"until,omitzero" jsonschema:"When it stops or stopped being true."`
	Closed     bool      `json:"closed,omitempty" jsonschema:"True if the fact was superseded or forgotten."`
}

func viewFact(f api.Fact) Fact {
	out := Fact{
		ID: f.ID, Text: f.Text, Kind: f.Kind, Category: f.Category, Subject: f.Subject, Predicate: f.Predicate, Object: f.Object,
		Confidence: math.Round(f.Confidence*1000) / 1000, Confirmed: f.Confirmed, Revision: f.Revision, User: f.User, Agent: f.Agent,
		Since: f.ValidFrom, Closed: f.ArchivedAt != nil || f.SupersededBy != "",
	}
	if f.ValidUntil != nil {
		out.Until = *f.ValidUntil
	}
	return out
}

// Episode is one message of a conversation.
type Episode struct {
	ID      string    `json:"id"`
	Role    string    `json:"role" jsonschema:"user, assistant, system or tool."`
	Content string    `json:"content"`
	At      time.Time `json:"at"`
	User    string    `json:"user,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Session string    `json:"session,omitempty"`
}

func viewEpisode(e api.Episode) Episode {
	return Episode{ID: e.ID, Role: e.Role, Content: e.Content, At: e.Timestamp, User: e.User, Agent: e.Agent, Session: e.Session}
}

// each maps a slice; its result is never nil, which would be null in JSON.
func each[A, B any](all []A, view func(A) B) []B {
	out := make([]B, len(all))
	for i, a := range all {
		out[i] = view(a)
	}
	return out
}
