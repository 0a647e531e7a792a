package scheduler

import (
	"palimpsest/pkg/events"
)

// commit is what the scheduler reads of an effect: where it moved the watermark
// of which rule. Decoding the rest, up to a megabyte of facts, would be waste.
type commit struct {
	events.Header
	Revision  uint64  `json:"revision"`
	Rule      string  `json:"rule"`
	Watermark *uint64 `json:"watermark,omitempty"`
	More      bool    `json:"more,omitempty"`
}

// Kind implements [events.Payload].
func (commit) Kind() events.Kind { return events.KindEffectCommitted }

// Validate implements [events.Payload].
func (c commit) Validate() error {
	if err := c.Scope.Validate(); err != nil {
		return &events.FieldError{Field: "scope", Code: events.CodeInvalidField, Reason: err.Error()}
	}
	return nil
}
