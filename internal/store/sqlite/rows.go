package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// maxCachedRows bounds the rows that the writer keeps between transactions.
const maxCachedRows = 20_000

// rowCache holds the scope and session rows that the writer works on. It is the
// only writer, so they are what the tables hold, or will hold after flush:
// many episodes of one scope in a group cost one update.
type rowCache struct {
	scopes map[scope.Scope]*scopeRow
	places map[scope.Scope]*placeRow
	dirty  []*scopeRow
	moved  []*placeRow
	// watched is nil until it was read, spaces until a write looks at them.
	watched []string
	spaces  *spaces
}

func newRowCache() *rowCache {
	return &rowCache{scopes: map[scope.Scope]*scopeRow{}, places: map[scope.Scope]*placeRow{}}
}

// scopeRow is a row of scopes, its watermarks, and whether every watched rule
// has its row in pending.
type scopeRow struct {
	id                                           int64
	fact                                         scope.Scope
	key                                          string
	incarnation, lastOrdinal, revision, auditSeq uint64
	episodes, facts                              corpus
	watermarks                                   map[string]uint64
	announced                                    bool
	dirty                                        bool
}

// corpus is what BM25 needs to know of the documents of one scope.
type corpus struct{ docs, terms int64 }

func (r *scopeRow) state() memory.State {
	return memory.State{
		Scope: r.fact, Incarnation: r.incarnation, LastOrdinal: r.lastOrdinal,
		Revision: r.revision, AuditSeq: r.auditSeq, Watermarks: maps.Clone(r.watermarks),
	}
}

// placeRow is a row of sessions.
type placeRow struct {
	id                  int64
	firstSeen, lastSeen int64
	lastOrdinal         uint64
	endedAt             sql.NullInt64
	endCause            events.EndCause
	live                bool
	dirty               bool
}

const selectScope = `SELECT id, incarnation, last_ordinal, revision, audit_seq,
  episode_docs, episode_terms, fact_docs, fact_terms FROM scopes WHERE project = ? AND key = ?`

// scope returns the row of a fact scope, nil where there is none.
func (w *writer) scope(fact scope.Scope) (*scopeRow, error) {
	if r := w.rows.scopes[fact]; r != nil {
		return r, nil
	}
	r := &scopeRow{fact: fact, key: fact.Key(), watermarks: map[string]uint64{}}
	found, err := w.one(selectScope, []any{fact.Project, r.key},
		&r.id, &r.incarnation, &r.lastOrdinal, &r.revision, &r.auditSeq,
		&r.episodes.docs, &r.episodes.terms, &r.facts.docs, &r.facts.terms)
	if err != nil || !found {
		return nil, err
	}
	if r.watermarks, err = readWatermarks(context.Background(), w, r.id); err != nil {
		return nil, err
	}
	w.rows.scopes[fact] = r
	return r, nil
}

// makeScope is [writer.scope], creating the row where there is none.
func (w *writer) makeScope(fact scope.Scope) (*scopeRow, error) {
	if r, err := w.scope(fact); r != nil || err != nil {
		return r, err
	}
	r := &scopeRow{
		fact: fact, key: fact.Key(), watermarks: map[string]uint64{}, incarnation: w.store.cfg.Born(fact.Project, fact.User),
	}
	res, err := w.run(`INSERT INTO scopes (project, key, user, agent, session) VALUES (?, ?, ?, ?, ?)`,
		fact.Project, r.key, fact.User, fact.Agent, fact.Session)
	if err != nil {
		return nil, fmt.Errorf("create scope: %w", err)
	}
	if r.id, err = res.LastInsertId(); err != nil {
		return nil, err
	}
	w.rows.scopes[fact] = r
	w.change(r)
	return r, nil
}

// change says that a scope's row, or what sessions it has, is another.
func (w *writer) change(r *scopeRow) {
	if !r.dirty {
		r.dirty = true
		w.rows.dirty = append(w.rows.dirty, r)
	}
}

// place returns the row of a full scope, nil where there is none.
func (w *writer) place(row *scopeRow, full scope.Scope) (*placeRow, error) {
	if p := w.rows.places[full]; p != nil {
		return p, nil
	}
	p := &placeRow{}
	found, err := w.one(`SELECT id, first_seen, last_seen, last_ordinal, ended_at, end_cause, live
	  FROM sessions WHERE scope_id = ? AND session = ?`, []any{row.id, full.Session},
		&p.id, &p.firstSeen, &p.lastSeen, &p.lastOrdinal, &p.endedAt, &p.endCause, &p.live)
	if err != nil || !found {
		return nil, err
	}
	w.rows.places[full] = p
	return p, nil
}

func (w *writer) makePlace(row *scopeRow, full scope.Scope, arrived int64) (*placeRow, error) {
	if p, err := w.place(row, full); p != nil || err != nil {
		return p, err
	}
	p := &placeRow{firstSeen: arrived, lastSeen: arrived}
	res, err := w.run(`INSERT INTO sessions (scope_id, project, session, first_seen, last_seen, last_ordinal)
	  VALUES (?, ?, ?, ?, ?, 0)`, row.id, full.Project, full.Session, arrived, arrived)
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	if p.id, err = res.LastInsertId(); err != nil {
		return nil, err
	}
	w.rows.places[full] = p
	w.change(row)
	return p, nil
}

func (w *writer) move(p *placeRow) {
	if !p.dirty {
		p.dirty = true
		w.rows.moved = append(w.rows.moved, p)
	}
}

// flush writes what changed. It must run before the commit, and before SQL that
// reads scopes or sessions past the cache.
func (c *rowCache) flush(w *writer) error {
	for _, r := range c.dirty {
		err := w.exec(`UPDATE scopes SET incarnation = ?, last_ordinal = ?, revision = ?, audit_seq = ?,
		  episode_docs = ?, episode_terms = ?, fact_docs = ?, fact_terms = ? WHERE id = ?`,
			r.incarnation, r.lastOrdinal, r.revision, r.auditSeq,
			r.episodes.docs, r.episodes.terms, r.facts.docs, r.facts.terms, r.id)
		if err != nil {
			return fmt.Errorf("update scope: %w", err)
		}
		w.then(func() { w.store.placesOf.change(userMark(r.fact.Project, r.fact.User)) })
		r.dirty = false
	}
	for _, p := range c.moved {
		err := w.exec(`UPDATE sessions SET last_seen = ?, last_ordinal = ?, ended_at = ?, end_cause = ?, live = ? WHERE id = ?`,
			p.lastSeen, p.lastOrdinal, p.endedAt, p.endCause, p.live, p.id)
		if err != nil {
			return fmt.Errorf("update session: %w", err)
		}
		p.dirty = false
	}
	c.dirty, c.moved = c.dirty[:0], c.moved[:0]
	if len(c.scopes)+len(c.places) > maxCachedRows {
		clear(c.scopes)
		clear(c.places)
	}
	return nil
}

func readWatermarks(ctx context.Context, q querier, scopeID int64) (map[string]uint64, error) {
	marks := map[string]uint64{}
	err := q.each(ctx, `SELECT rule, watermark FROM rule_states WHERE scope_id = ? AND watermark IS NOT NULL`,
		[]any{scopeID}, func(row scanner) error {
			var rule string
			var mark uint64
			if err := row.Scan(&rule, &mark); err != nil {
				return err
			}
			marks[rule] = mark
			return nil
		})
	return marks, err
}

// micros is how instants are stored. Every instant of the years 1 to 9999 fits,
// and the zero time is one of them.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

func nullMicros(t *time.Time) sql.NullInt64 {
	if t == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: true}
}
