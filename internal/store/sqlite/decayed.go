package sqlite

import (
	"context"

	"palimpsest/internal/store"
)

// Decayed implements [store.Schedule].
func (s *Store) Decayed(ctx context.Context, q store.DecayQuery) (list []store.Decayed, err error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	query := `SELECT s.project, s.user, s.agent, s.session, s.incarnation, f.id FROM facts f INDEXED BY facts_to_prune
	  CROSS JOIN scopes s ON s.id = f.scope_id WHERE f.prune_at <= ? ORDER BY f.prune_at LIMIT ? OFFSET ?`
	args := []any{micros(q.At), q.Limit, q.Offset}
	if q.Scope != nil {
		id, err := s.scopeID(ctx, *q.Scope)
		if err != nil {
			return nil, err
		}
		query = `SELECT s.project, s.user, s.agent, s.session, s.incarnation, f.id FROM facts f INDEXED BY facts_to_prune
		  CROSS JOIN scopes s ON s.id = f.scope_id WHERE f.prune_at <= ? AND f.scope_id = ? ORDER BY f.prune_at LIMIT ? OFFSET ?`
		args = []any{micros(q.At), id, q.Limit, q.Offset}
	}
	err = s.reads.each(ctx, query, args, func(row scanner) error {
		var d store.Decayed
		err := row.Scan(&d.Scope.Project, &d.Scope.User, &d.Scope.Agent, &d.Scope.Session, &d.Incarnation, &d.ID)
		list = append(list, d)
		return err
	})
	return list, err
}
