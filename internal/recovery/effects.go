package recovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// copyScope copies what effects have made of a fact scope from the live store
// into one under construction, which has some of these effects, or none. Neither
// AUDIT nor the audit log has the rest. It reports whether the live store has
// more effects than the other one.
func copyScope(ctx context.Context, from Earlier, into Draft, fact scope.Scope) (copied bool, err error) {
	live, err := from.State(ctx, fact)
	if err != nil {
		return false, err
	}
	made, err := into.State(ctx, fact)
	if err != nil || made.Revision >= live.Revision {
		return false, err
	}
	rows, err := from.Snapshot(ctx, fact)
	if err != nil {
		return false, err
	}
	stale, err := into.Holds(ctx, fact)
	if err != nil {
		return false, err
	}
	for _, e := range restate(rows, live, stale) {
		if err := into.ResumeAt(ctx, fact, live.Revision-1); err != nil {
			return false, fmt.Errorf("resume %s at revision %d: %w", fact, live.Revision-1, err)
		}
		if err := into.Apply(ctx, e, live.AuditSeq); err != nil {
			return false, fmt.Errorf("copy %s at revision %d: %w", fact, live.Revision, err)
		}
	}
	return true, nil
}

// restatedRows bounds the rows of one effect, as backends bound those of a write.
const restatedRows = 64

// restate returns effects that make the rows of a snapshot, all of the revision
// that the live store has. No journal gets them. stale are the holds that the
// store under construction has.
func restate(rows memory.Snapshot, live memory.State, stale []events.Hold) (out []events.EffectCommitted) {
	add := func(rule string, fill func(e *events.EffectCommitted)) {
		e := events.EffectCommitted{
			Header: events.Header{Scope: live.Scope, Incarnation: live.Incarnation},
			Rule:   rule, Revision: live.Revision, CommittedAt: restoredAt,
		}
		fill(&e)
		out = append(out, e)
	}
	part(rows.Facts, add, func(e *events.EffectCommitted, some []events.Fact) { e.Facts = some })
	part(rows.Versions, add, func(e *events.EffectCommitted, some []events.Fact) { e.Versions = some })
	part(rows.Entities, add, func(e *events.EffectCommitted, some []events.Entity) { e.Entities = some })
	part(rows.Edges, add, func(e *events.EffectCommitted, some []events.Edge) { e.Edges = some })
	part(rows.Holds, add, func(e *events.EffectCommitted, some []events.Hold) { e.Holds = some })
	for _, rule := range slices.Sorted(maps.Keys(live.Watermarks)) {
		add(rule, func(e *events.EffectCommitted) { mark := live.Watermarks[rule]; e.Watermark = &mark })
	}
	add(events.RuleCommand, func(e *events.EffectCommitted) {
		for _, h := range stale {
			if !slices.ContainsFunc(rows.Holds, func(kept events.Hold) bool { return kept.ID == h.ID }) {
				e.Released = append(e.Released, h.ID)
			}
		}
	})
	return out
}

// part adds an effect for each part of rows.
func part[R any](rows []R, add func(string, func(*events.EffectCommitted)), set func(*events.EffectCommitted, []R)) {
	for some := range slices.Chunk(rows, restatedRows) {
		add(events.RuleCommand, func(e *events.EffectCommitted) { set(e, some) })
	}
}

// restoredAt is when a restated effect was committed: a store keeps no such
// instant, and a rebuild reads no clock.
var restoredAt = time.Unix(0, 0).UTC()
