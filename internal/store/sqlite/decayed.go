package sqlite

import (
	"context"
	"database/sql"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// due are the queries for the rows of one step of maintenance, of all scopes and of
// one.
type due struct{ all, one string }

func dueBy(table, index, column string) due {
	from := `SELECT s.project, s.user, s.agent, s.session, s.incarnation, f.id FROM ` + table + ` f INDEXED BY ` + index + `
	  CROSS JOIN scopes s ON s.id = f.scope_id WHERE f.` + column + ` <= ?`
	order := ` ORDER BY f.` + column + ` LIMIT ? OFFSET ?`
	return due{from + order, from + ` AND f.scope_id = ?` + order}
}

var (
	decayed     = dueBy("facts", "facts_to_prune", "prune_at")
	undescribed = dueBy("entities", "entities_to_describe", "describe_at")
)

// Decayed implements [store.Schedule].
func (s *Store) Decayed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error) {
	return s.due(ctx, decayed, q)
}

// Undescribed implements [store.Schedule].
func (s *Store) Undescribed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error) {
	return s.due(ctx, undescribed, q)
}

func (s *Store) due(ctx context.Context, d due, q store.DecayQuery) (list []store.Decayed, err error) {
	if err := store.CheckLimit(q.Limit); err != nil {
		return nil, err
	}
	query, args := d.all, []any{micros(q.At), q.Limit, q.Offset}
	if q.Scope != nil {
		id, err := s.scopeID(ctx, *q.Scope)
		if err != nil {
			return nil, err
		}
		query, args = d.one, []any{micros(q.At), id, q.Limit, q.Offset}
	}
	err = s.reads.each(ctx, query, args, func(row scanner) error {
		var d store.Decayed
		err := row.Scan(&d.Scope.Project, &d.Scope.User, &d.Scope.Agent, &d.Scope.Session, &d.Incarnation, &d.ID)
		list = append(list, d)
		return err
	})
	return list, err
}

func describeAt(e events.Entity) sql.NullInt64 {
	at, ok := memory.DescribeAt(e)
	if !ok {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: micros(at), Valid: true}
}
