package sqlite

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/audit"
	"palimpsest/internal/memory"
	"palimpsest/pkg/scope"
)

var _ audit.Eraser = (*Log)(nil)

// keysOf lists the keys of the scopes of a project, whatever table they stand in.
const keysOf = `SELECT scope FROM places WHERE project = ?1 UNION SELECT DISTINCT scope FROM effects WHERE project = ?1
	UNION SELECT DISTINCT scope FROM tallies WHERE project = ?1`

// Erase implements [audit.Eraser]. It rewrites the whole file: a deleted row stays
// in the free space of its page otherwise.
func (l *Log) Erase(ctx context.Context, whom memory.Whom) (out audit.Erased, err error) {
	if err := l.enter(); err != nil {
		return out, err
	}
	defer l.leave()
	keys, err := l.keysOf(ctx, whom)
	if err == nil {
		out, err = l.eraseScopes(ctx, whom.Project, keys)
	}
	if err == nil {
		err = l.rewrite(ctx)
	}
	if err != nil {
		return out, fmt.Errorf("audit sqlite: erase: %w", err)
	}
	return out, nil
}

// Scan implements [audit.Eraser].
func (l *Log) Scan(ctx context.Context, whom memory.Whom) (uint64, error) {
	if err := l.enter(); err != nil {
		return 0, err
	}
	defer l.leave()
	keys, err := l.keysOf(ctx, whom)
	if err != nil {
		return 0, fmt.Errorf("audit sqlite: scan: %w", err)
	}
	return uint64(len(keys)), nil
}

func (l *Log) keysOf(ctx context.Context, whom memory.Whom) (keys []string, err error) {
	rows, err := l.file.Write.QueryContext(ctx, keysOf, whom.Project)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		s, err := scope.ParseKey(whom.Project, key)
		if err != nil {
			return nil, err
		}
		if whom.Owns(s) {
			keys = append(keys, key)
		}
	}
	return keys, rows.Err()
}

func (l *Log) eraseScopes(ctx context.Context, project string, keys []string) (out audit.Erased, err error) {
	tx, err := l.file.Write.BeginTx(ctx, nil)
	if err != nil {
		return out, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	for _, key := range keys {
		for i, statement := range []string{
			`DELETE FROM effects WHERE project = ? AND scope = ?`,
			`DELETE FROM tallies WHERE project = ? AND scope = ?`,
			`DELETE FROM record_rows WHERE place = (SELECT id FROM places WHERE project = ? AND scope = ?)`,
			`DELETE FROM places WHERE project = ? AND scope = ?`,
		} {
			res, err := tx.ExecContext(ctx, statement, project, key)
			if err != nil {
				return out, err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return out, err
			}
			if i == 0 {
				out.Effects += uint64(n)
			}
			out.Rows += uint64(n)
		}
	}
	return out, tx.Commit()
}

func (l *Log) rewrite(ctx context.Context) error {
	if _, err := l.file.Write.ExecContext(ctx, `VACUUM`); err != nil {
		return fmt.Errorf("rewrite the file: %w", err)
	}
	var busy, logged, copied int
	if err := l.file.Write.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &logged, &copied); err != nil {
		return fmt.Errorf("truncate the log: %w", err)
	}
	if busy != 0 {
		return errors.New("truncate the log: a reader holds it")
	}
	return nil
}
