package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
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
		// Earlier versions counted claims by under_way.
		err = w.exec(`INSERT OR REPLACE INTO claims (scope_id, rule, project, above, upto, at, attempt, under_way)
		  VALUES (?, ?, ?, ?, ?, ?, ?, 0)`, row.id, rule, fact.Project, next.Range.From, next.Range.To, micros(next.At), next.Attempt)
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

// Look implements [store.Schedule].
func (s *Store) Look(ctx context.Context, fact scope.Scope) (store.Standing, error) {
	state, err := s.State(ctx, fact)
	look := store.Standing{State: state}
	if err != nil {
		return look, err
	}
	err = s.reads.each(ctx, `SELECT coalesce((SELECT e.last_ordinal FROM session_ends e
	      WHERE e.scope_id = s.id AND e.last_ordinal > 0 ORDER BY e.last_ordinal DESC LIMIT 1), 0),
	    (SELECT count(*) FROM sessions p WHERE p.scope_id = s.id AND p.ended_at IS NULL AND p.live = 1 AND p.session <> ''),
	    c.rule, c.above, c.upto, c.at, c.attempt
	  FROM scopes s LEFT JOIN claims c ON c.scope_id = s.id WHERE s.project = ? AND s.key = ?`,
		[]any{fact.Project, fact.Key()}, func(row scanner) error {
			var rule sql.NullString
			var c claimRow
			err := row.Scan(&look.Ended, &look.Open, &rule, &c.from, &c.to, &c.at, &c.attempt)
			if rule.Valid {
				if look.Claims == nil {
					look.Claims = map[string]store.Claim{}
				}
				look.Claims[rule.String] = c.claim()
			}
			return err
		})
	return look, err
}

// claimRow is a claim as it is stored, or nothing.
type claimRow struct {
	from, to sql.Null[uint64]
	at       sql.NullInt64
	attempt  sql.Null[int]
}

// claim is the zero Claim for none.
func (c claimRow) claim() store.Claim {
	if !c.at.Valid {
		return store.Claim{}
	}
	return store.Claim{Range: events.Range{From: c.from.V, To: c.to.V}, At: fromMicros(c.at.Int64), Attempt: c.attempt.V}
}
