package consolidator

import (
	"context"
	"fmt"

	"palimpsest/pkg/events"
)

// head is what the projector reads of an effect: which one it is. Decoding the
// rest, up to a megabyte of facts, would be waste.
type head struct {
	events.Header
	Revision uint64 `json:"revision"`
}

// Kind implements [events.Payload].
func (head) Kind() events.Kind { return events.KindEffectCommitted }

// Validate implements [events.Payload].
func (h head) Validate() error {
	if err := h.Scope.Validate(); err != nil {
		return &events.FieldError{Field: "scope", Code: events.CodeInvalidField, Reason: err.Error()}
	}
	return nil
}

// project tails AUDIT: a scope that lacks the effect is rolled forward, unless
// whoever committed it is this process and about to apply it.
func (s *Service) project(ctx context.Context, in events.Event[head]) ([]events.Payload, error) {
	if err := s.own.wait(ctx, in.Data.Scope); err != nil {
		return nil, fmt.Errorf("wait for the commit: %w", err)
	}
	if s.own.has(in.Data) {
		return nil, nil
	}
	state, err := s.deps.Applier.State(ctx, in.Data.Scope)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	if state.Revision >= in.Data.Revision || in.Data.Incarnation < state.Incarnation {
		return nil, nil
	}
	return s.rollForward(ctx, in.Data.Scope)
}
