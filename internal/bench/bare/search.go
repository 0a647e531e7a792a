package bare

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"palimpsest/internal/lex"
)

// Search is the simplest search for one user without filters and history: FTS5 over
// the same terms, and vectors in one slice.
type Search struct {
	db         *sql.DB
	match      *sql.Stmt
	dimensions int
	vectors    []float32
}

// OpenSearch makes an empty index in a directory.
func OpenSearch(ctx context.Context, dir string) (*Search, error) {
	db, err := openFile(filepath.Join(dir, "bare.db"))
	if err != nil {
		return nil, err
	}
	b := &Search{db: db}
	if _, err = db.ExecContext(ctx, `CREATE VIRTUAL TABLE bare USING fts5 (terms, tokenize = 'ascii')`); err == nil {
		b.match, err = db.PrepareContext(ctx, `SELECT rowid, terms FROM bare WHERE bare MATCH ? ORDER BY rank LIMIT ?`)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make bare index: %w", err), db.Close())
	}
	return b, nil
}

// Close closes the index.
func (b *Search) Close() error { return errors.Join(b.match.Close(), b.db.Close()) }

// Fill runs fill in one transaction. Each call of add indexes texts and keeps their
// vectors, which have the same length. The rows count from 1.
func (b *Search) Fill(ctx context.Context, fill func(add func(texts []string, vectors [][]float32) error) error) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit there is nothing to undo
	row := 0
	err = fill(func(texts []string, vectors [][]float32) error {
		for i, text := range texts {
			row++
			if _, err := tx.ExecContext(ctx, `INSERT INTO bare (rowid, terms) VALUES (?, ?)`, row, strings.Join(lex.Terms(text), " ")); err != nil {
				return fmt.Errorf("bare index: %w", err)
			}
			b.dimensions = len(vectors[i])
			b.vectors = append(b.vectors, vectors[i]...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}

// Match returns the best rows that hold any of the words, at most limit.
func (b *Search) Match(ctx context.Context, text string, limit int) ([]int64, error) {
	terms := lex.Terms(text)
	for i, t := range terms {
		terms[i] = `"` + t + `"`
	}
	list, err := b.match.QueryContext(ctx, strings.Join(terms, " OR "), limit)
	if err != nil {
		return nil, fmt.Errorf("bare query: %w", err)
	}
	defer list.Close() //nolint:errcheck // list.Err says what went wrong
	rows := make([]int64, 0, limit)
	for list.Next() {
		var row int64
		var terms string
		if err := list.Scan(&row, &terms); err != nil {
			return nil, fmt.Errorf("bare query: %w", err)
		}
		rows = append(rows, row)
	}
	return rows, list.Err()
}

// near is a row of the scan.
type near struct {
	row   int64
	score float32
}

// Nearest returns the rows whose vectors are nearest, best first, at most limit.
func (b *Search) Nearest(query []float32, limit int) []int64 {
	best := make([]near, 0, limit+1)
	for row := range len(b.vectors) / b.dimensions {
		score := inner(query, b.vectors[row*b.dimensions:(row+1)*b.dimensions])
		if len(best) == limit && score <= best[limit-1].score {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, score, func(n near, s float32) int { return cmp.Compare(s, n.score) })
		best = slices.Insert(best, at, near{int64(row) + 1, score})
		best = best[:min(len(best), limit)]
	}
	rows := make([]int64, len(best))
	for i, n := range best {
		rows[i] = n.row
	}
	return rows
}

// inner is the inner product, eight sums abreast so that none waits for another.
func inner(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	for len(a) >= 8 && len(b) >= 8 {
		x, y := (*[8]float32)(a), (*[8]float32)(b)
		s0, s1, s2, s3 = s0+x[0]*y[0], s1+x[1]*y[1], s2+x[2]*y[2], s3+x[3]*y[3]
		s4, s5, s6, s7 = s4+x[4]*y[4], s5+x[5]*y[5], s6+x[6]*y[6], s7+x[7]*y[7]
		a, b = a[8:], b[8:]
	}
	for i := range min(len(a), len(b)) {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7
}
