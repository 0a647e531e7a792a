package sqlite

import (
	"context"
	"fmt"

	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// Claim implements [store.Schedule].
func (s *Store) Claim(ctx context.Context, fact scope.Scope, rule string, expect, next store.Claim) (store.Claim, bool, error) {
	if err := fact.Validate(); err != nil {
		return store.Claim{}, false, err
	}
	next.At = fromMicros(micros(next.At))
	var stands store.Claim
	var won bool
	err := s.write(ctx, func(w *writer) error {
		stands, won = store.Claim{}, false
		row, err := w.makeScope(fact)
		if err != nil {
			return err
		}
		if err := w.each(ctx, selectClaim, []any{row.id, rule}, func(r scanner) (err error) {
			stands, err = scanClaim(r)
			return err
		}); err != nil {
			return err
		}
		if !sameClaim(stands, expect) {
			return nil
		}
		err = w.exec(`INSERT OR REPLACE INTO claims (scope_id, rule, project, above, upto, at, attempt, under_way)
		  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, row.id, rule, fact.Project, next.Range.From, next.Range.To,
			micros(next.At), next.Attempt, next.Range.To > row.watermarks[rule])
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		stands, won = next, true
		return nil
	})
	return stands, won, err
}

func sameClaim(a, b store.Claim) bool {
	return a.Range == b.Range && a.Attempt == b.Attempt && micros(a.At) == micros(b.At)
}

const selectClaim = `SELECT above, upto, at, attempt FROM claims WHERE scope_id = ? AND rule = ?`

func scanClaim(row scanner) (c store.Claim, err error) {
	var at int64
	err = row.Scan(&c.Range.From, &c.Range.To, &at, &c.Attempt)
	c.At = fromMicros(at)
	return c, err
}

// ClaimOf implements [store.Schedule].
func (s *Store) ClaimOf(ctx context.Context, fact scope.Scope, rule string) (c store.Claim, err error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return store.Claim{}, err
	}
	err = s.reads.each(ctx, selectClaim, []any{scopeID, rule}, func(row scanner) (err error) {
		c, err = scanClaim(row)
		return err
	})
	return c, err
}

// ClaimsUnderWay implements [store.Schedule].
func (s *Store) ClaimsUnderWay(ctx context.Context, project string) (map[string]int, error) {
	byRule := make(map[string]int)
	err := s.reads.each(ctx, `SELECT rule, count(*) FROM claims WHERE project = ? AND under_way = 1 GROUP BY rule`,
		[]any{project}, func(row scanner) error {
			var rule string
			var n int
			err := row.Scan(&rule, &n)
			byRule[rule] = n
			return err
		})
	return byRule, err
}
