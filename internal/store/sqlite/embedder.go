package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

// adoptEmbedder holds the index to one embedding space. The space may change
// while there are no vectors, or when the caller wants them made anew.
func adoptEmbedder(ctx context.Context, conn *sql.Conn, cfg Config) error {
	if cfg.Embedder.Dimensions == 0 {
		return nil
	}
	known, err := readEmbedder(ctx, conn)
	if err != nil || sameSpace(known, cfg.Embedder) {
		return err
	}
	var vectors bool
	err = conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM episode_vectors) OR EXISTS (SELECT 1 FROM fact_vectors)`).Scan(&vectors)
	if err != nil {
		return fmt.Errorf("sqlite: look for vectors: %w", err)
	}
	if vectors && !cfg.Reembed {
		return fmt.Errorf("sqlite: index of %s@%s (%d), embedder is %s@%s (%d): %w", known.Name, known.Version, known.Dimensions,
			cfg.Embedder.Name, cfg.Embedder.Version, cfg.Embedder.Dimensions, store.ErrEmbedder)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("sqlite: adopt embedder: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	if err := restart(ctx, tx, cfg.Embedder); err != nil {
		return fmt.Errorf("sqlite: adopt embedder: %w", err)
	}
	return tx.Commit()
}

func sameSpace(a, b embed.Info) bool {
	return a.Name == b.Name && a.Version == b.Version && a.Dimensions == b.Dimensions
}

// restart queues every row that has a vector or was refused one, and drops the
// vectors.
func restart(ctx context.Context, tx *sql.Tx, info embed.Info) error {
	raw, err := json.Marshal(info)
	if err != nil {
		return err
	}
	for _, t := range []table{factTable, episodeTable} {
		queue := `INSERT OR IGNORE INTO vector_queue (target, row, project) SELECT ?, row, project FROM ` + t.vectors + ` JOIN scopes ON id = scope_id ORDER BY row` //nolint:gosec // the table's name is ours
		if _, err := tx.ExecContext(ctx, queue, t.target); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+t.vectors); err != nil { //nolint:gosec // the table's name is ours
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE vector_queue SET refused = NULL`); err != nil {
		return err
	}
	for name, value := range map[string]string{"embedder": string(raw), "dimensions": strconv.Itoa(info.Dimensions)} {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)`, name, value); err != nil {
			return err
		}
	}
	return nil
}

func readEmbedder(ctx context.Context, conn *sql.Conn) (info embed.Info, err error) {
	var raw string
	err = conn.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'embedder'`).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return info, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(raw), &info)
	}
	if err != nil {
		return info, fmt.Errorf("sqlite: read embedder: %w", err)
	}
	return info, nil
}

// readDimensions returns the length of the vectors; 0 while there are none.
func readDimensions(ctx context.Context, conn *sql.Conn) (n int, err error) {
	err = conn.QueryRowContext(ctx, `SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'dimensions'`).Scan(&n)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("sqlite: read dimensions: %w", err)
	}
	return n, nil
}

func (w *writer) setDimensions(n int) error {
	if err := w.exec(`INSERT OR REPLACE INTO meta (name, value) VALUES ('dimensions', ?)`, strconv.Itoa(n)); err != nil {
		return fmt.Errorf("set dimensions: %w", err)
	}
	w.then(func() { w.store.drawer.dimensions.Store(int64(n)) })
	return nil
}
