package api

import (
	"encoding/json"
	"time"
)

// Episode is something that was said, as it is read back.
type Episode struct {
	ID string `json:"id"`
	Scope
	Role       string         `json:"role"`
	Content    string         `json:"content"`
	Timestamp  time.Time      `json:"timestamp" doc:"When it happened, with its UTC offset."`
	Clamped    bool           `json:"clamped,omitempty" doc:"The publisher's timestamp lay more than 5 min after the arrival and was set to the arrival."`
	ArrivedAt  time.Time      `json:"arrived_at"`
	SourceNode string         `json:"source_node,omitempty"`
	Metadata   map[string]any `json:"metadata,omitempty"`
	Mode       string         `json:"mode,omitempty"`
	Ordinal    uint64         `json:"ordinal" doc:"Position within its fact scope, from 1."`
}

// Message is one message of a conversation, as a caller brings it.
type Message struct {
	ID         string          `json:"id,omitempty" doc:"Unique per scope; the same id twice is one episode. Left out: a random one."`
	Role       string          `json:"role,omitempty" enum:"user,assistant,system,tool" default:"user"`
	Content    string          `json:"content" minLength:"1"`
	Timestamp  json.RawMessage `json:"timestamp,omitempty" doc:"RFC 3339 text or unix seconds. Left out: the arrival."`
	SourceNode string          `json:"source_node,omitempty"`
	Metadata   map[string]any  `json:"metadata,omitempty"`
	Mode       string          `json:"mode,omitempty" enum:"persistent,backfill,incognito" doc:"incognito: kept in memory for two hours, and shown only to reads of its session; nothing is written or extracted. Offered by palimpsest up."`
}

// Record asks to remember what was said: Messages, or one Content.
type Record struct {
	Scope
	Messages Messages `json:"messages,omitempty" doc:"One or many messages, or a string: one message of the user."`
	Wait     bool     `json:"wait,omitempty" doc:"Answer with what came of the messages."`
	Timeout  float64  `json:"timeout,omitempty" doc:"Longest wait in seconds, 30 unless given." maximum:"300"`
	Prompt   string   `json:"prompt,omitempty" doc:"Replaces the extraction prompt of the language model for these messages."`
	Infer    *bool    `json:"infer,omitempty" doc:"False stores each message verbatim as a fact."`
}

// Messages reads a list of messages, one message, or a string.
type Messages []Message

// UnmarshalJSON implements [json.Unmarshaler].
func (m *Messages) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*m = Messages{{Content: text}}
		return nil
	}
	if len(raw) > 0 && raw[0] == '{' {
		var one Message
		if err := json.Unmarshal(raw, &one); err != nil {
			return err
		}
		*m = Messages{one}
		return nil
	}
	var many []Message
	if err := json.Unmarshal(raw, &many); err != nil {
		return err
	}
	*m = many
	return nil
}

// Accepted is one message that the stream holds.
type Accepted struct {
	ID       string `json:"id"`
	Sequence uint64 `json:"sequence" doc:"Position in the stream of episodes."`
}

// Written is the answer to a write.
type Written struct {
	CorrelationID string `json:"correlation_id"`
	At            string `json:"at" doc:"Read-your-writes token: give it to a read as the parameter at."`
	Status        string `json:"status" enum:"accepted,done" doc:"done: results are whole; accepted: the work goes on."`
	// Episodes lists the accepted messages, in order.
	Episodes []Accepted `json:"episodes,omitempty"`
	Results  []Result   `json:"results,omitempty"`
	Fact     *Fact      `json:"fact,omitempty"`
	Closed   *int       `json:"closed,omitempty" doc:"Of a delete by scope: how many facts it closed."`
	Undo     *UndoPlan  `json:"undo,omitempty" doc:"Of an undo: what it changes, and what it leaves alone."`
	Erasures []string   `json:"erasures,omitempty" doc:"Of a reset: the erasures of the users, each as GET /v1/erasures/{id} takes it."`
	Warnings []string   `json:"warnings,omitempty" doc:"Messages that a rule gave up on."`
}

// Result is what happened to one memory.
type Result struct {
	Event     string `json:"event" enum:"ADD,UPDATE,DELETE,NONE"`
	ID        string `json:"id,omitempty"`
	Revision  uint64 `json:"revision,omitempty"`
	Memory    string `json:"memory,omitempty"`
	OldMemory string `json:"old_memory,omitempty"`
	Reason    string `json:"reason"`
	Rule      string `json:"rule"`
	DeltaID   string `json:"delta_id"`
}

// EpisodePage is a page of episodes, newest first.
type EpisodePage struct {
	Episodes []Episode `json:"episodes"`
	Next     string    `json:"next,omitempty" doc:"Cursor of the next page; absent on the last."`
	Stale    bool      `json:"stale,omitempty" doc:"The write named by at was not visible within 2 s."`
}

// EndSession ends a session.
type EndSession struct {
	Scope
	Cause string `json:"cause,omitempty" enum:"explicit,disconnect,timeout" default:"explicit"`
}
