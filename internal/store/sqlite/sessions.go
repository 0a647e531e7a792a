package sqlite

import (
	"context"
	"database/sql"
	"math"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

const selectSession = `SELECT p.id, s.project, s.user, s.agent, p.session, p.first_seen, p.last_seen, p.last_ordinal,
  p.ended_at, p.end_cause, p.live FROM sessions p CROSS JOIN scopes s ON s.id = p.scope_id`

func scanSession(row scanner) (id int64, m memory.Session, err error) {
	var first, last int64
	var ended sql.NullInt64
	err = row.Scan(&id, &m.Scope.Project, &m.Scope.User, &m.Scope.Agent, &m.Scope.Session, &first, &last, &m.LastOrdinal,
		&ended, &m.EndCause, &m.Live)
	m.FirstSeen, m.LastSeen = fromMicros(first), fromMicros(last)
	if ended.Valid {
		m.EndedAt = fromMicros(ended.Int64)
	}
	return id, m, err
}

// IdleSessions implements [store.Schedule].
func (s *Store) IdleSessions(ctx context.Context, at time.Time, yield func(memory.Session) bool) error {
	seen, after := int64(math.MinInt64), int64(0)
	return eachPage(func() (page []memory.Session, err error) {
		err = s.reads.each(ctx, selectSession+` WHERE p.ended_at IS NULL AND p.live = 1 AND p.session <> ''
		  AND p.last_seen < ? AND (p.last_seen, p.id) > (?, ?) ORDER BY p.last_seen, p.id LIMIT ?`,
			[]any{store.CeilMicros(at), seen, after, pageSize}, func(row scanner) error {
				id, m, err := scanSession(row)
				page = append(page, m)
				seen, after = micros(m.LastSeen), id
				return err
			})
		return page, err
	}, yield)
}

// OpenSessions implements [store.Schedule].
func (s *Store) OpenSessions(ctx context.Context, fact scope.Scope) ([]memory.Session, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	var list []memory.Session
	err = s.reads.each(ctx, selectSession+` WHERE p.scope_id = ? AND p.ended_at IS NULL AND p.live = 1 AND p.session <> '' ORDER BY +p.session`,
		[]any{scopeID}, func(row scanner) error {
			_, m, err := scanSession(row)
			list = append(list, m)
			return err
		})
	return list, err
}

// Sessions implements [store.EpisodeReader]. The index by place gives the beginning
// of each session.
func (s *Store) Sessions(ctx context.Context, sel scope.Selector, q store.SessionQuery) ([]scope.Scope, error) {
	if err := store.CheckLimit(q.Limit); err != nil {
		return nil, err
	}
	if err := sel.Validate(); err != nil {
		return nil, err
	}
	where, args := matchScopes(sel, false)
	if sel.Session != nil {
		where += ` AND p.session = ?`
		args = append(args, *sel.Session)
	}
	direction := ``
	if q.Newest {
		direction = ` DESC`
	}
	before := int64(math.MaxInt64)
	if !q.Before.IsZero() {
		before = store.CeilMicros(q.Before)
	}
	var list []scope.Scope
	err := s.reads.each(ctx, `SELECT s.project, s.user, s.agent, p.session, (SELECT min(e.ts) FROM episodes e WHERE e.place_id = p.id) AS begun
	  FROM scopes s CROSS JOIN sessions p ON p.scope_id = s.id WHERE `+where+` AND p.session <> '' AND begun < ?
	  ORDER BY begun`+direction+`, s.key`+direction+`, p.session`+direction+` LIMIT ? OFFSET ?`,
		append(args, before, q.Limit, q.Skip), func(row scanner) error {
			var full scope.Scope
			var begun int64
			err := row.Scan(&full.Project, &full.User, &full.Agent, &full.Session, &begun)
			list = append(list, full)
			return err
		})
	return list, err
}
