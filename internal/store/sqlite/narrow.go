package sqlite

import (
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// factFilter is what narrows facts, in lists and searches alike.
type factFilter struct {
	session       *string
	kinds         []events.FactKind
	validAt       time.Time
	archived      bool
	after, before time.Time
	matching      *store.Filter
}

// narrowFacts is the filter as SQL on facts f, beginning with AND. Each part is
// there or not, so that the number of texts stays small.
func narrowFacts(q factFilter) (where string, args []any) {
	if q.session != nil {
		where += ` AND EXISTS (SELECT 1 FROM fact_sessions fs WHERE fs.fact = f.row AND fs.session = ?)`
		args = append(args, *q.session)
	}
	if len(q.kinds) > 0 {
		where += ` AND f.kind IN (SELECT value FROM json_each(?))`
		args = append(args, jsonList(q.kinds))
	}
	if !q.validAt.IsZero() {
		// Columns are whole microseconds: floor for ≤, and until > at holds for
		// the floor as it does for the instant itself.
		where += ` AND f.valid_from <= ? AND (f.valid_until IS NULL OR f.valid_until > ?)`
		args = append(args, micros(q.validAt), micros(q.validAt))
	}
	if !q.archived {
		where += ` AND f.archived_at IS NULL`
	}
	if !q.after.IsZero() {
		where += ` AND f.event_time > ?`
		args = append(args, micros(q.after))
	}
	if !q.before.IsZero() {
		where += ` AND f.event_time < ?`
		args = append(args, store.CeilMicros(q.before))
	}
	return factColumns.narrow(where, args, q.matching)
}

// narrowEpisodes is the filter as SQL on episodes e and sessions p.
func narrowEpisodes(session *string, after, before time.Time, matching *store.Filter) (where string, args []any) {
	if session != nil {
		where += ` AND p.session = ?`
		args = append(args, *session)
	}
	if !after.IsZero() {
		where += ` AND e.ts > ?`
		args = append(args, micros(after))
	}
	if !before.IsZero() {
		where += ` AND e.ts < ?`
		args = append(args, store.CeilMicros(before))
	}
	return episodeColumns.narrow(where, args, matching)
}
