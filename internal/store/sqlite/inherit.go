package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// heirloom is what of a table no stream holds. A query that begins with the
// columns of owned is about rows of fact scopes; put gets the heir's row of that
// scope, and is not called where there is none.
type heirloom struct {
	name, from string
	put        func(w *writer, owner *scopeRow, row []any) error
}

const owned = `SELECT s.project, s.user, s.agent, s.session, `

var heirlooms = []heirloom{
	{"access statistics", owned + `f.id, f.revision, f.access_count, f.last_accessed, f.strength, f.prune_at
	  FROM facts f JOIN scopes s ON s.id = f.scope_id`,
		func(w *writer, owner *scopeRow, row []any) error {
			return w.exec(`UPDATE facts SET access_count = ?3, last_accessed = ?4, strength = ?5, prune_at = ?6
			  WHERE id = ?1 AND scope_id = ?7 AND revision = ?2`, append(row, owner.id)...)
		}},
	{"claims", owned + `c.rule, c.project, c.above, c.upto, c.at, c.attempt
	  FROM claims c JOIN scopes s ON s.id = c.scope_id`,
		func(w *writer, owner *scopeRow, row []any) error {
			return w.exec(`INSERT OR REPLACE INTO claims (rule, project, above, upto, at, attempt, scope_id, under_way)
			  VALUES (?, ?, ?, ?, ?, ?, ?, 0)`, append(row, owner.id)...)
		}},
	{"cached replies", owned + `c.key, c.value, c.expires FROM cache c JOIN scopes s ON s.id = c.scope_id`,
		func(w *writer, owner *scopeRow, row []any) error {
			return w.exec(`INSERT OR REPLACE INTO cache (key, value, expires, scope_id) VALUES (?, ?, ?, ?)`, append(row, owner.id)...)
		}},
	{"requests", `SELECT project, route, key, body_hash, correlation, status, body, expires FROM requests`,
		func(w *writer, _ *scopeRow, row []any) error {
			return w.exec(`INSERT OR REPLACE INTO requests (project, route, key, body_hash, correlation, status, body, expires)
			  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, row...)
		}},
	{"fires", `SELECT rule, at FROM fires`,
		func(w *writer, _ *scopeRow, row []any) error {
			return w.exec(`INSERT OR REPLACE INTO fires (rule, at) VALUES (?, ?)`, row...)
		}},
}

// Inherit copies the rows that no stream holds from the store that this one
// replaces: how often facts were read, answers to POSTs, cached replies, ticks in
// progress and when cron last fired. None of it is part of the export. The
// statistics of a fact with another revision are not copied.
func (s *Store) Inherit(ctx context.Context, live store.Store) error {
	from, ok := live.(*Store)
	if !ok {
		return fmt.Errorf("sqlite: inherit from %T", live)
	}
	for _, h := range heirlooms {
		if err := s.inherit(ctx, from, h); err != nil {
			return fmt.Errorf("inherit %s: %w", h.name, err)
		}
	}
	return nil
}

func (s *Store) inherit(ctx context.Context, from *Store, h heirloom) error {
	if err := from.reads.begin(ctx); err != nil {
		return err
	}
	defer from.reads.end()
	rows, err := from.reads.db.QueryContext(ctx, h.from)
	if err != nil {
		return readError(err)
	}
	err = s.inheritRows(ctx, rows, h)
	return errors.Join(err, rows.Close())
}

func (s *Store) inheritRows(ctx context.Context, rows *sql.Rows, h heirloom) error {
	names, err := rows.Columns()
	if err != nil {
		return readError(err)
	}
	var into []any
	var fact scope.Scope
	if strings.HasPrefix(h.from, owned) {
		into = []any{&fact.Project, &fact.User, &fact.Agent, &fact.Session}
	}
	row := make([]any, len(names)-len(into))
	for i := range row {
		into = append(into, &row[i])
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return readError(err)
		}
		if err := s.write(ctx, func(w *writer) (err error) {
			var owner *scopeRow
			if fact.Project != "" {
				if owner, err = w.scope(fact); owner == nil {
					return err
				}
			}
			return h.put(w, owner, slices.Clip(row))
		}); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return readError(err)
	}
	return nil
}
