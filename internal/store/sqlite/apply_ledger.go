package sqlite

import (
	"context"
	"fmt"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// putLedger moves the watermark and settles what the effect counts.
func (w *writer) putLedger(row *scopeRow, effect events.EffectCommitted) error {
	t := effect.Tally
	err := w.exec(`INSERT INTO rule_states (scope_id, rule, watermark, candidates, decided, held, dropped)
	  VALUES (?, ?, ?, ?, ?, ?, ?)
	  ON CONFLICT (scope_id, rule) DO UPDATE SET
	    watermark = CASE WHEN excluded.watermark IS NULL THEN watermark ELSE max(coalesce(watermark, 0), excluded.watermark) END,
	    candidates = candidates + excluded.candidates, decided = decided + excluded.decided,
	    held = held + excluded.held, dropped = dropped + excluded.dropped`,
		row.id, effect.Rule, effect.Watermark, t.Candidates, t.Decided, t.Held, t.Dropped)
	if err != nil {
		return fmt.Errorf("settle ledger: %w", err)
	}
	for _, s := range t.Settled {
		err := w.exec(`UPDATE rule_states SET held = held - ?, decided = decided + ?, dropped = dropped + ? WHERE scope_id = ? AND rule = ?`,
			s.Decided+s.Dropped, s.Decided, s.Dropped, row.id, s.Rule)
		if err != nil {
			return fmt.Errorf("settle held: %w", err)
		}
	}
	if effect.Range != nil {
		if err := w.putSkips(row, effect); err != nil {
			return err
		}
	}
	if effect.Watermark == nil {
		return nil
	}
	mark := max(row.watermarks[effect.Rule], *effect.Watermark)
	row.watermarks[effect.Rule] = mark
	if mark < row.lastOrdinal {
		return nil
	}
	row.announced = false
	if err := w.exec(`DELETE FROM pending WHERE rule = ? AND project = ? AND key = ?`, effect.Rule, row.fact.Project, row.key); err != nil {
		return fmt.Errorf("settle pending: %w", err)
	}
	return nil
}

// putSkips keeps the ranges that were buried: a buried one is added, one that a
// late batch made good is taken out, wherever it was cut.
func (w *writer) putSkips(row *scopeRow, effect events.EffectCommitted) error {
	r := *effect.Range
	late := effect.Watermark == nil
	if r.Empty() || late && effect.Skipped != "" {
		return nil
	}
	if err := w.cutSkips(row.id, effect.Rule, r); err != nil {
		return err
	}
	if effect.Skipped == "" {
		return nil
	}
	return w.insertSkip(row.id, effect.Rule, r)
}

// Skipped implements [store.Applier].
func (s *Store) Skipped(ctx context.Context, fact scope.Scope, rule string) ([]events.Range, error) {
	if err := fact.Validate(); err != nil {
		return nil, err
	}
	var out []events.Range
	err := s.reads.each(ctx, `SELECT k.above, k.upto FROM skips k JOIN scopes s ON s.id = k.scope_id
	  WHERE s.project = ? AND s.key = ? AND k.rule = ? ORDER BY k.above`,
		[]any{fact.Project, fact.Key(), rule}, func(row scanner) error {
			var r events.Range
			err := row.Scan(&r.From, &r.To)
			out = append(out, r)
			return err
		})
	return out, err
}

func (w *writer) cutSkips(scopeID int64, rule string, r events.Range) error {
	var met []events.Range
	err := w.each(context.Background(), `SELECT above, upto FROM skips WHERE scope_id = ? AND rule = ? AND above < ? AND upto > ?`,
		[]any{scopeID, rule, r.To, r.From}, func(row scanner) error {
			var s events.Range
			err := row.Scan(&s.From, &s.To)
			met = append(met, s)
			return err
		})
	if err != nil {
		return err
	}
	for _, s := range met {
		if err := w.exec(`DELETE FROM skips WHERE scope_id = ? AND rule = ? AND above = ?`, scopeID, rule, s.From); err != nil {
			return fmt.Errorf("settle skips: %w", err)
		}
		for _, rest := range []events.Range{{From: s.From, To: min(s.To, r.From)}, {From: max(s.From, r.To), To: s.To}} {
			if rest.Empty() {
				continue
			}
			if err := w.insertSkip(scopeID, rule, rest); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *writer) insertSkip(scopeID int64, rule string, r events.Range) error {
	err := w.exec(`INSERT OR REPLACE INTO skips (scope_id, rule, above, upto) VALUES (?, ?, ?, ?)`, scopeID, rule, r.From, r.To)
	if err != nil {
		return fmt.Errorf("insert skip: %w", err)
	}
	return nil
}
