package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Apply implements [store.Applier].
func (s *Store) Apply(ctx context.Context, effect events.EffectCommitted, auditSeq uint64) error {
	if err := effect.Validate(); err != nil {
		return err
	}
	facts := make([]newFact, len(effect.Facts))
	for i, f := range effect.Facts {
		var err error
		if facts[i], err = prepareFact(f); err != nil {
			return err
		}
	}
	sets, err := packOutcomes(effect)
	if err != nil {
		return err
	}
	var verdict error
	err = s.write(ctx, func(w *writer) error {
		var row *scopeRow
		var err error
		if row, verdict, err = w.admit(effect); row == nil || err != nil {
			return err
		}
		return w.apply(row, effect, facts, sets, auditSeq)
	})
	if err != nil {
		return err
	}
	return verdict
}

// Advance implements [store.Applier].
func (s *Store) Advance(ctx context.Context, fact scope.Scope) error {
	return s.write(ctx, func(w *writer) error {
		row, err := w.scope(fact)
		if err != nil || row == nil {
			return err
		}
		highest := row.lastOrdinal
		for _, mark := range row.watermarks {
			highest = max(highest, mark)
		}
		return w.raise(row, highest)
	})
}

// raise sets the last ordinal of a scope, unless it is higher.
func (w *writer) raise(row *scopeRow, last uint64) error {
	if last <= row.lastOrdinal {
		return nil
	}
	row.lastOrdinal, row.announced = last, false
	w.change(row)
	return w.announce(row)
}

// admit finds the effect's scope and whether it is this effect's turn; row is
// nil where it is not.
func (w *writer) admit(effect events.EffectCommitted) (row *scopeRow, verdict, err error) {
	row, err = w.scope(effect.Scope)
	if err != nil {
		return nil, nil, err
	}
	revision, incarnation := uint64(0), w.store.cfg.Born(effect.Scope.Project, effect.Scope.User)
	if row != nil {
		revision, incarnation = row.revision, row.incarnation
	}
	switch {
	case effect.Incarnation < incarnation:
		return nil, store.ErrIncarnation, nil
	case effect.Revision <= revision:
		return nil, nil, nil
	case effect.Revision > revision+1:
		return nil, store.ErrBehind, nil
	}
	row, err = w.makeScope(effect.Scope)
	return row, nil, err
}

func (w *writer) apply(row *scopeRow, effect events.EffectCommitted, facts []newFact, sets []outcomeSet, auditSeq uint64) error {
	for _, step := range []func() error{
		func() error { return w.putFacts(row, facts) },
		func() error { return w.putVersions(row, effect.Versions) },
		func() error { return w.putEntities(row, effect.Entities) },
		func() error { return w.putEdges(row, effect.Edges) },
		func() error { return w.putHolds(row, effect.Holds, effect.Released) },
		func() error { return w.putEnds(row, effect.SessionEnds) },
		func() error { return w.putOutcomes(row, effect, sets) },
		func() error { return w.putLedger(row, effect) },
		func() error { return w.sweep() },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	row.revision = effect.Revision
	row.auditSeq = max(row.auditSeq, auditSeq)
	row.incarnation = effect.Incarnation
	w.change(row)
	return nil
}

func (w *writer) putVersions(row *scopeRow, versions []events.Fact) error {
	for _, v := range versions {
		v = store.WholeMicros(v)
		body, err := encodeFact(v)
		if err != nil {
			return fmt.Errorf("encode version: %w", err)
		}
		err = w.exec(`INSERT OR IGNORE INTO versions (scope_id, id, revision, hash, subject, predicate, object, body)
		  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, row.id, v.ID, v.Revision, v.Hash, v.Subject, v.Predicate, objectOf(v), body)
		if err != nil {
			return fmt.Errorf("insert version: %w", err)
		}
	}
	return nil
}

// entityBody is the stored form of an entity, without its id.
type entityBody struct {
	events.Entity
	ID string `json:"id,omitempty"`
}

func (w *writer) putEntities(row *scopeRow, entities []events.Entity) error {
	for _, e := range entities {
		body, err := json.Marshal(entityBody{Entity: e})
		if err != nil {
			return fmt.Errorf("encode entity: %w", err)
		}
		if err := w.exec(`INSERT OR REPLACE INTO entities (scope_id, id, body, describe_at) VALUES (?, ?, ?, ?)`,
			row.id, e.ID, string(body), describeAt(e)); err != nil {
			return fmt.Errorf("put entity: %w", err)
		}
		if err := w.exec(`DELETE FROM entity_names WHERE scope_id = ? AND id = ?`, row.id, e.ID); err != nil {
			return fmt.Errorf("put entity: %w", err)
		}
		for _, name := range append([]string{e.CanonicalName}, e.Aliases...) {
			err := w.exec(`INSERT OR IGNORE INTO entity_names (scope_id, name, id) VALUES (?, ?, ?)`, row.id, memory.EntityKey(name), e.ID)
			if err != nil {
				return fmt.Errorf("put entity name: %w", err)
			}
		}
	}
	return nil
}

// edgeBody is the stored form of an edge, without the members that are columns.
type edgeBody struct {
	events.Edge
	ID       string `json:"id,omitempty"`
	SourceID string `json:"source_id,omitempty"`
	TargetID string `json:"target_id,omitempty"`
}

func (w *writer) putEdges(row *scopeRow, edges []events.Edge) error {
	for _, e := range edges {
		body, err := json.Marshal(edgeBody{Edge: e})
		if err != nil {
			return fmt.Errorf("encode edge: %w", err)
		}
		err = w.exec(`INSERT OR REPLACE INTO edges (scope_id, id, source_id, target_id, body) VALUES (?, ?, ?, ?, ?)`,
			row.id, e.ID, e.SourceID, e.TargetID, string(body))
		if err != nil {
			return fmt.Errorf("put edge: %w", err)
		}
	}
	return nil
}

func (w *writer) putHolds(row *scopeRow, holds []events.Hold, released []string) error {
	for _, h := range holds {
		body, err := json.Marshal(h)
		if err != nil {
			return fmt.Errorf("encode hold: %w", err)
		}
		var due any
		if h.Due != nil {
			due = store.CeilMicros(*h.Due)
		}
		err = w.exec(`INSERT OR REPLACE INTO holds (scope_id, id, held_at, fact_id, due, body) VALUES (?, ?, ?, ?, ?, ?)`,
			row.id, h.ID, micros(h.HeldAt), h.FactID, due, string(body))
		if err != nil {
			return fmt.Errorf("put hold: %w", err)
		}
	}
	for _, id := range released {
		if err := w.exec(`DELETE FROM holds WHERE scope_id = ? AND id = ?`, row.id, id); err != nil {
			return fmt.Errorf("release hold: %w", err)
		}
	}
	return nil
}

// putEnds records the ends that the effect knows of, which a store that is
// built anew may not; a session that went on since stays open.
func (w *writer) putEnds(row *scopeRow, ends []events.SessionEnd) error {
	for _, end := range ends {
		if err := w.insertEnd(row.id, end); err != nil {
			return err
		}
		full := scope.Scope{Project: row.fact.Project, User: row.fact.User, Agent: row.fact.Agent, Session: end.Session}
		place, err := w.place(row, full)
		if err != nil {
			return err
		}
		if place == nil || place.endedAt.Valid || place.lastOrdinal != end.LastOrdinal {
			continue
		}
		place.endedAt = sql.NullInt64{Int64: micros(end.At), Valid: true}
		place.endCause = end.Cause
		w.move(place)
	}
	return nil
}
