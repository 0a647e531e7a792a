package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"palimpsest/internal/store"
)

// vectorRow selects the identity of a row of the queue; one more column follows.
const vectorRow = `SELECT q.target, s.project, s.user, s.agent, coalesce(p.session, s.session),
  coalesce(e.id, f.id), coalesce(e.source, ''), coalesce(f.revision, 0), `

// vectorRows joins the rows of a queue q with their episodes and facts.
const vectorRows = ` q
  LEFT JOIN episodes e ON q.target = 2 AND e.row = q.row
  LEFT JOIN sessions p ON p.id = e.place_id
  LEFT JOIN facts f ON q.target = 1 AND f.row = q.row
  JOIN scopes s ON s.id = coalesce(e.scope_id, f.scope_id) `

func scanVectorRow(row scanner, ref *store.VectorRef, last *string) error {
	return row.Scan(&ref.Target, &ref.Scope.Project, &ref.Scope.User, &ref.Scope.Agent, &ref.Scope.Session,
		&ref.ID, &ref.Source, &ref.Revision, last)
}

// PendingVectors implements [store.VectorWriter]. The file belongs to one process,
// so it has all partitions.
func (s *Store) PendingVectors(ctx context.Context, id uint64, limit int, _ ...int) ([]store.PendingVector, error) {
	if limit < 1 {
		return nil, fmt.Errorf("sqlite: limit %d is not positive", limit)
	}
	for {
		sp, ok := s.spaces.Load().find(id)
		if !ok {
			return nil, nil
		}
		list, err := s.pendingIn(ctx, sp, limit)
		if len(list) > 0 || err != nil {
			return list, err
		}
		if more, err := s.fill(ctx, sp.ID); !more || err != nil {
			return nil, err
		}
	}
}

func (s *Store) pendingIn(ctx context.Context, sp space, limit int) ([]store.PendingVector, error) {
	projects, err := s.vectorTurns(ctx, sp, limit)
	if err != nil {
		return nil, fmt.Errorf("take turns: %w", err)
	}
	var list []store.PendingVector
	for _, project := range projects {
		err := s.reads.each(ctx, vectorRow+`coalesce(e.content, f.body ->> '$.text') FROM `+sp.queue()+vectorRows+
			`WHERE q.project = ? AND q.refused IS NULL ORDER BY q.seq`+atMost, []any{project, limit / len(projects)}, func(row scanner) error {
			v := store.PendingVector{Ref: store.VectorRef{Space: sp.ID}}
			err := scanVectorRow(row, &v.Ref, &v.Text)
			list = append(list, v)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// vectorTurns are projects with pending texts, at most limit. Where there are more,
// the next call goes on behind the last of them.
func (s *Store) vectorTurns(ctx context.Context, sp space, limit int) ([]string, error) {
	s.turn.Lock()
	defer s.turn.Unlock()
	last := &s.turn.last[sp.Tables]
	projects, err := s.projectsBehind(ctx, sp, *last, limit)
	if err == nil && len(projects) == 0 && *last != "" {
		projects, err = s.projectsBehind(ctx, sp, "", limit)
	}
	*last = ""
	if len(projects) == limit {
		*last = projects[limit-1]
	}
	return projects, err
}

// projectsBehind lists projects with pending texts by one seek in the index each.
func (s *Store) projectsBehind(ctx context.Context, sp space, last string, limit int) (projects []string, err error) {
	for len(projects) < limit {
		var next sql.NullString
		_, err := s.reads.one(ctx, `SELECT min(project) FROM `+sp.queue()+` WHERE refused IS NULL AND project > ?`, []any{last}, &next)
		if err != nil || !next.Valid {
			return projects, err
		}
		last = next.String
		projects = append(projects, last)
	}
	return projects, nil
}

// RefuseVectors implements [store.VectorWriter].
func (s *Store) RefuseVectors(ctx context.Context, refused []store.RefusedVector) error {
	return s.write(ctx, func(w *writer) error {
		for _, v := range refused {
			if err := w.refuseVector(v); err != nil {
				return fmt.Errorf("refuse vector of %s: %w", v.Ref.ID, err)
			}
		}
		return nil
	})
}

func (w *writer) refuseVector(v store.RefusedVector) error {
	if err := v.Ref.Scope.Validate(); err != nil {
		return err
	}
	sp, ok := w.spaces().find(v.Ref.Space)
	if !ok {
		return nil
	}
	r, found, err := w.embedded(v.Ref)
	if err != nil || !found {
		return err
	}
	return w.exec(`UPDATE `+sp.queue()+` SET refused = ? WHERE target = ? AND row = ?`, v.Reason, r.target, r.row)
}

// RefusedVectors implements [store.VectorWriter].
func (s *Store) RefusedVectors(ctx context.Context, limit int) (list []store.RefusedVector, err error) {
	err = s.reads.each(ctx, vectorRow+`q.refused FROM `+s.spaces.Load().Served.queue()+vectorRows+`WHERE q.refused IS NOT NULL ORDER BY q.seq`+atMost, []any{limit},
		func(row scanner) error {
			var v store.RefusedVector
			err := scanVectorRow(row, &v.Ref, &v.Reason)
			list = append(list, v)
			return err
		})
	return list, err
}

// textRow is a row that has, or lacks, a vector of its text.
type textRow struct {
	table
	scope *scopeRow
	row   int64
}

// embedded finds the row whose text was embedded, unless it is gone or its text
// another by now.
func (w *writer) embedded(ref store.VectorRef) (r textRow, found bool, err error) {
	if r.table, err = tableOf(ref.Target); err != nil {
		return r, false, err
	}
	if r.scope, err = w.scope(ref.Scope.Fact()); err != nil || r.scope == nil {
		return r, false, err
	}
	if ref.Target == store.Facts {
		found, err = w.one(`SELECT row FROM facts WHERE id = ? AND scope_id = ? AND revision = ?`,
			[]any{ref.ID, r.scope.id, ref.Revision}, &r.row)
	} else {
		found, err = w.one(`SELECT e.row FROM episodes e WHERE e.scope_id = ?1 AND e.id = ?2 AND e.source = ?3
		  AND e.place_id = (SELECT id FROM sessions WHERE scope_id = ?1 AND session = ?4)`,
			[]any{r.scope.id, ref.ID, ref.Source, ref.Scope.Session}, &r.row)
	}
	return r, found, err
}

// queueVector flags a row of a project as lacking its vector in every space.
func (w *writer) queueVector(target store.Target, row int64, project string) error {
	for _, sp := range w.spaces().all() {
		if err := w.exec(`INSERT INTO `+sp.queue()+` (target, row, project) VALUES (?, ?, ?)
		  ON CONFLICT DO UPDATE SET refused = NULL`, target, row, project); err != nil {
			return fmt.Errorf("queue vector: %w", err)
		}
	}
	return nil
}
