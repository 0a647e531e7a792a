package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

var _ store.Eraser = (*Store)(nil)

// Erase implements [store.Eraser]. It rewrites the whole file: a deleted row, and
// a row that was updated long ago, stays in the free space of its page otherwise.
func (s *Store) Erase(ctx context.Context, whom memory.Whom) (out store.Erased, err error) {
	ids, err := s.scopesOf(ctx, whom)
	if err != nil {
		return out, fmt.Errorf("sqlite: erase: %w", err)
	}
	err = s.write(ctx, func(w *writer) error {
		out = store.Erased{Scopes: uint64(len(ids))}
		for _, id := range ids {
			if err := w.eraseScope(id, &out); err != nil {
				return err
			}
		}
		for _, s := range strays() {
			if err := w.add(&out.Rows, `DELETE FROM `+s.table+` WHERE `+s.condition); err != nil {
				return err
			}
		}
		n, err := w.count(`DELETE FROM requests WHERE project = ?`, whom.Project)
		out.Rows += n
		w.forget()
		return err
	})
	if err == nil {
		err = errors.Join(Discard(s.cfg.Path+KeptSuffix), s.rewrite(ctx))
	}
	if err != nil {
		return out, fmt.Errorf("sqlite: erase: %w", err)
	}
	return out, nil
}

// Scan implements [store.Eraser].
func (s *Store) Scan(ctx context.Context, whom memory.Whom) (uint64, error) {
	ids, err := s.scopesOf(ctx, whom)
	if err != nil {
		return 0, fmt.Errorf("sqlite: scan: %w", err)
	}
	left := uint64(len(ids))
	for _, of := range strays() {
		err := s.reads.each(ctx, `SELECT count(*) FROM `+of.table+` WHERE `+of.condition, nil, func(row scanner) error {
			var n uint64
			err := row.Scan(&n)
			left += n
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("sqlite: scan %s: %w", of.table, err)
		}
	}
	return left, nil
}

// stray are rows of a table that belong to no scope. No row tells whose they were, so an
// erasure deletes them all.
type stray struct{ table, condition string }

func strays() (list []stray) {
	for _, table := range append(slices.Clone(scoped), "episodes", "facts") {
		list = append(list, stray{table, `scope_id NOT IN (SELECT id FROM scopes)`})
	}
	list = append(list, stray{"fact_sessions", `fact NOT IN (SELECT row FROM facts)`},
		stray{"outcome_keys", `set_row NOT IN (SELECT row FROM outcome_sets)`})
	for target, table := range []string{"fact", "episode"} {
		list = append(list, stray{table + "_text", `rowid IN (SELECT id FROM ` + table + `_text_docsize
		  WHERE id >> ` + lengthShift + ` NOT IN (SELECT row FROM ` + table + `s))`})
		for _, queue := range []string{"vector_queue", "vector_queue_2"} {
			list = append(list, stray{queue, fmt.Sprintf(`target = %d AND row NOT IN (SELECT row FROM %ss)`, target+1, table)})
		}
	}
	return list
}

// scopesOf returns the rows of the user's scopes.
func (s *Store) scopesOf(ctx context.Context, whom memory.Whom) (ids []int64, err error) {
	err = s.reads.each(ctx, `SELECT id, user FROM scopes WHERE project = ? AND user <> ''`, []any{whom.Project}, func(row scanner) error {
		var id int64
		of := scope.Scope{Project: whom.Project}
		if err := row.Scan(&id, &of.User); err != nil {
			return err
		}
		if whom.Owns(of) {
			ids = append(ids, id)
		}
		return nil
	})
	return ids, err
}

// lengthShift is lengthBits, to build statements of constants.
const lengthShift = "10"

// indexed are the tables beside those of episodes and facts, which name their rows.
var indexed = []string{
	`DELETE FROM episode_text WHERE rowid IN (SELECT d.id FROM episodes e CROSS JOIN episode_text_docsize d
	  ON d.id BETWEEN e.row << ` + lengthShift + ` AND (e.row + 1 << ` + lengthShift + `) - 1 WHERE e.scope_id = ?)`,
	`DELETE FROM fact_text WHERE rowid IN (SELECT d.id FROM facts f CROSS JOIN fact_text_docsize d
	  ON d.id BETWEEN f.row << ` + lengthShift + ` AND (f.row + 1 << ` + lengthShift + `) - 1 WHERE f.scope_id = ?)`,
	`DELETE FROM fact_sessions WHERE fact IN (SELECT row FROM facts WHERE scope_id = ?)`,
	`DELETE FROM vector_queue WHERE target = 2 AND row IN (SELECT row FROM episodes WHERE scope_id = ?)`,
	`DELETE FROM vector_queue WHERE target = 1 AND row IN (SELECT row FROM facts WHERE scope_id = ?)`,
	`DELETE FROM vector_queue_2 WHERE target = 2 AND row IN (SELECT row FROM episodes WHERE scope_id = ?)`,
	`DELETE FROM vector_queue_2 WHERE target = 1 AND row IN (SELECT row FROM facts WHERE scope_id = ?)`,
	`DELETE FROM outcome_keys WHERE set_row IN (SELECT row FROM outcome_sets WHERE scope_id = ?)`,
}

// scoped are the tables whose rows name their scope.
var scoped = []string{
	"sessions", "session_ends", "rule_states", "skips", "pending", "claims", "versions", "entities", "entity_names",
	"edges", "holds", "outcomes", "outcome_sets", "cache",
	"episode_vectors", "fact_vectors", "episode_vectors_2", "fact_vectors_2",
}

func (w *writer) eraseScope(id int64, out *store.Erased) error {
	for _, query := range indexed {
		if err := w.add(&out.Rows, query, id); err != nil {
			return err
		}
	}
	for _, table := range scoped {
		if err := w.add(&out.Rows, `DELETE FROM `+table+` WHERE scope_id = ?`, id); err != nil {
			return err
		}
	}
	for _, table := range []struct {
		name string
		of   *uint64
	}{{"episodes", &out.Episodes}, {"facts", &out.Facts}} {
		n, err := w.count(`DELETE FROM `+table.name+` WHERE scope_id = ?`, id)
		if err != nil {
			return err
		}
		*table.of += n
		out.Rows += n
	}
	return w.add(&out.Rows, `DELETE FROM scopes WHERE id = ?`, id)
}

func (w *writer) add(to *uint64, query string, args ...any) error {
	n, err := w.count(query, args...)
	*to += n
	return err
}

func (w *writer) count(query string, args ...any) (uint64, error) {
	res, err := w.run(query, args...)
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return uint64(max(0, n)), err
}

// rewrite makes a file without what was deleted. The text indexes keep the terms of
// a deleted document until its segment is merged.
func (s *Store) rewrite(ctx context.Context) error {
	db, err := sql.Open("sqlite", sqlitefile.DSN(s.cfg.Path, s.cfg.file(), true))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // its writes are committed
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		`INSERT INTO episode_text (episode_text) VALUES ('optimize')`,
		`INSERT INTO fact_text (fact_text) VALUES ('optimize')`,
		`VACUUM`,
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	var busy, logged, copied int
	if err := db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &logged, &copied); err != nil {
		return fmt.Errorf("truncate the log: %w", err)
	}
	if busy != 0 {
		return errors.New("truncate the log: a reader holds it")
	}
	return nil
}
