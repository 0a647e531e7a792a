package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// newFact is an after-image with all that can be worked out before it is the
// writer's turn.
type newFact struct {
	events.Fact
	body  string
	terms []string
	// object is that of a fact that may have many, as objects are compared.
	object sql.NullString
}

func prepareFact(f events.Fact) (newFact, error) {
	f = store.WholeMicros(f)
	body, err := encodeFact(f)
	if err != nil {
		return newFact{}, fmt.Errorf("sqlite: %w", err)
	}
	return newFact{Fact: f, body: body, terms: indexTerms(f.Text), object: objectOf(f)}, nil
}

func objectOf(f events.Fact) sql.NullString {
	return sql.NullString{String: lex.Object(f.Object), Valid: f.Cardinality != events.One}
}

// oldFact is what an after-image replaces.
type oldFact struct {
	row          int64
	terms        int
	accesses     uint64
	lastAccessed int64
	strength     float64
	events.Fact
}

func (w *writer) oldFact(scopeID int64, id string) (*oldFact, error) {
	var old oldFact
	var stored factRow
	found, err := w.one(`SELECT row, terms, access_count, last_accessed, strength, `+bodyOf("facts")+` FROM facts WHERE id = ? AND scope_id = ?`,
		[]any{id, scopeID}, append([]any{&old.row, &old.terms, &old.accesses, &old.lastAccessed, &old.strength}, stored.columns()...)...)
	if err != nil || !found {
		return nil, err
	}
	if old.Fact, err = stored.fact(); err != nil {
		return nil, err
	}
	return &old, nil
}

func (w *writer) putFacts(row *scopeRow, facts []newFact) error {
	for _, f := range facts {
		old, err := w.oldFact(row.id, f.ID)
		if err != nil {
			return err
		}
		if old == nil {
			err = w.insertFact(row, f)
		} else {
			err = w.replaceFact(row, old, f)
		}
		if err != nil {
			return fmt.Errorf("put fact %s: %w", f.ID, err)
		}
	}
	return nil
}

func (w *writer) insertFact(row *scopeRow, f newFact) error {
	created := micros(f.CreatedAt)
	accessed := max(created, micros(w.store.cfg.AccessedFrom()))
	res, err := w.run(`INSERT INTO facts (scope_id, id, revision, kind, hash, subject, predicate, object, created_at, event_time,
	  valid_from, valid_until, archived_at, strength, access_count, last_accessed, prune_at, terms, body)
	  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?)`,
		row.id, f.ID, f.Revision, f.Kind, f.Hash, f.Subject, f.Predicate, f.object, created, micros(f.EventTime),
		micros(f.ValidFrom), nullMicros(f.ValidUntil), nullMicros(f.ArchivedAt), f.Confidence, accessed,
		w.pruneAt(f.Fact, f.Confidence, accessed), len(f.terms), f.body)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	if err := w.indexText(factTable, &row.facts, row.id, id, f.terms); err != nil {
		return err
	}
	if err := w.putSessions(id, f.SessionIDs); err != nil {
		return err
	}
	return w.queueVector(store.Facts, id, row.fact.Project)
}

func (w *writer) replaceFact(row *scopeRow, old *oldFact, f newFact) error {
	strength, last := memory.Renew(old.Fact, f.Fact, old.strength, fromMicros(old.lastAccessed))
	accessed := micros(last)
	err := w.exec(`UPDATE facts SET revision = ?, kind = ?, hash = ?, subject = ?, predicate = ?, object = ?, created_at = ?, event_time = ?,
	  valid_from = ?, valid_until = ?, archived_at = ?, strength = ?, last_accessed = ?, prune_at = ?, terms = ?, body = ? WHERE row = ?`,
		f.Revision, f.Kind, f.Hash, f.Subject, f.Predicate, f.object, micros(f.CreatedAt), micros(f.EventTime),
		micros(f.ValidFrom), nullMicros(f.ValidUntil), nullMicros(f.ArchivedAt), strength,
		accessed, w.pruneAt(f.Fact, strength, accessed), len(f.terms), f.body, old.row)
	if err != nil {
		return err
	}
	w.unshelve(store.Facts, old.row)
	if !slices.Equal(old.SessionIDs, f.SessionIDs) {
		if err := w.exec(`DELETE FROM fact_sessions WHERE fact = ?`, old.row); err != nil {
			return err
		}
		if err := w.putSessions(old.row, f.SessionIDs); err != nil {
			return err
		}
	}
	if old.Text == f.Text {
		return nil
	}
	if err := w.unindexText(factTable, &row.facts, row.id, old.row, old.terms, indexTerms(old.Text)); err != nil {
		return err
	}
	if err := w.indexText(factTable, &row.facts, row.id, old.row, f.terms); err != nil {
		return err
	}
	if err := w.dropVector(factTable, row.id, old.row); err != nil {
		return err
	}
	return w.queueVector(store.Facts, old.row, row.fact.Project)
}

func (w *writer) putSessions(fact int64, sessions []string) error {
	for _, session := range sessions {
		if err := w.exec(`INSERT OR IGNORE INTO fact_sessions (fact, session) VALUES (?, ?)`, fact, session); err != nil {
			return err
		}
	}
	return nil
}

// pruneAt is when the fact's confidence falls under the threshold; null for
// what never does, or is not there to be pruned.
func (w *writer) pruneAt(f events.Fact, strength float64, lastAccessed int64) sql.NullInt64 {
	at, ok := memory.Decays(f, strength, fromMicros(lastAccessed))
	if !ok {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: micros(at), Valid: true}
}

// Touch implements [store.Applier].
func (s *Store) Touch(ctx context.Context, fact scope.Scope, ids []string, at time.Time) error {
	if err := fact.Validate(); err != nil {
		return err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	return s.write(ctx, func(w *writer) error {
		row, err := w.scope(fact)
		if err != nil || row == nil {
			return err
		}
		for _, id := range ids {
			old, err := w.oldFact(row.id, id)
			if err != nil {
				return err
			}
			if old == nil {
				continue
			}
			n := old.accesses + 1
			last := fromMicros(old.lastAccessed)
			strength := memory.Reinforce(old.strength, old.DecayRate, last, at, n)
			accessed := max(old.lastAccessed, micros(at))
			if err := w.exec(`UPDATE facts SET access_count = ?, last_accessed = ?, strength = ?, prune_at = ? WHERE row = ?`,
				n, accessed, strength, w.pruneAt(old.Fact, strength, accessed), old.row); err != nil {
				return fmt.Errorf("touch fact %s: %w", id, err)
			}
			w.unshelve(store.Facts, old.row)
		}
		return nil
	})
}
