package scheduler

import (
	"context"
	"fmt"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// actor is who asks for what the clock asks for.
const actor = "palimpsest:scheduler"

// maxReleases bounds the releases of one run; the next run finds the rest.
const maxReleases = 1000

// holds asks for the release of held candidates whose time has come. A hold may
// be found by several replicas, and again until it is released: the first
// command that is carried out takes it, the others find it gone.
func (s *Service) holds(ctx context.Context, now time.Time) ([]events.Payload, error) {
	var out []events.Payload
	err := s.deps.Schedule.DueHolds(ctx, now, func(h store.DueHold) bool {
		// Held again it has another time, and is another one to release.
		key := announcement{scope: h.Scope, ordinal: uint64(h.Due.UnixMicro()), hold: h.ID}
		if s.announced.first(key, now) {
			out = append(out, release(h, now))
		}
		return len(out) < maxReleases
	})
	if err != nil {
		return settled(out, fmt.Errorf("list due holds: %w", err))
	}
	return out, nil
}

// release is a command of its own each time: one that came to nothing must not
// stand in the way of the next.
func release(h store.DueHold, now time.Time) events.CommandRequested {
	return events.CommandRequested{
		Header: events.Header{Scope: h.Scope, Incarnation: h.Incarnation},
		CommandRef: events.CommandRef{
			RequestID: events.HashID("release", h.Scope.Project, h.Scope.Key(), h.ID, now.UTC().Format(time.RFC3339Nano)),
			Op:        events.OpReleaseDue,
		},
		Actor: actor, HoldID: h.ID, At: now,
	}
}
