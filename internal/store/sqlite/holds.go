package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Holds implements [store.FactReader].
func (s *Store) Holds(ctx context.Context, fact scope.Scope) ([]events.Hold, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil {
		return nil, err
	}
	return bodies[events.Hold](ctx, s.reads, `SELECT body FROM holds WHERE scope_id = ? ORDER BY held_at, id`, scopeID)
}

// ListHolds implements [store.FactReader].
func (s *Store) ListHolds(ctx context.Context, sel scope.Selector, q store.HoldQuery) ([]store.Hold, error) {
	if err := store.CheckLimit(q.Limit); err != nil {
		return nil, err
	}
	if err := sel.Validate(); err != nil {
		return nil, err
	}
	where, args := matchScopes(sel, true)
	if q.ID != "" {
		where, args = where+" AND h.id = ?", append(args, q.ID)
	}
	if q.FactID != "" {
		where, args = where+" AND h.fact_id = ?", append(args, q.FactID)
	}
	if q.Cursor != nil {
		where, args = where+" AND (h.held_at, h.id, s.key) > (?, ?, ?)", append(args, micros(q.Cursor.HeldAt), q.Cursor.ID, q.Cursor.Key)
	}
	var list []store.Hold
	err := s.reads.each(ctx, `SELECT s.project, s.user, s.agent, s.session, h.body FROM holds h JOIN scopes s ON s.id = h.scope_id
	  WHERE `+where+` ORDER BY h.held_at, h.id, s.key LIMIT ?`, append(args, q.Limit), func(row scanner) error {
		var h store.Hold
		var body rawText
		if err := row.Scan(&h.Scope.Project, &h.Scope.User, &h.Scope.Agent, &h.Scope.Session, &body); err != nil {
			return err
		}
		if err := jsonv2.Unmarshal(body, &h.Hold); err != nil {
			return fmt.Errorf("decode hold: %w", err)
		}
		list = append(list, h)
		return nil
	})
	return list, err
}

// DueHolds implements [store.Schedule].
func (s *Store) DueHolds(ctx context.Context, at time.Time, yield func(store.DueHold) bool) error {
	due, scopeID, id := int64(math.MinInt64), int64(0), ""
	return eachPage(func() (page []store.DueHold, err error) {
		err = s.reads.each(ctx, `SELECT s.project, s.user, s.agent, s.session, s.incarnation, h.due, h.scope_id, h.id
		  FROM holds h CROSS JOIN scopes s ON s.id = h.scope_id
		  WHERE h.due <= ? AND (h.due, h.scope_id, h.id) > (?, ?, ?) ORDER BY h.due, h.scope_id, h.id LIMIT ?`,
			[]any{micros(at), due, scopeID, id, pageSize}, func(row scanner) error {
				var h store.DueHold
				err := row.Scan(&h.Scope.Project, &h.Scope.User, &h.Scope.Agent, &h.Scope.Session, &h.Incarnation, &due, &scopeID, &id)
				h.ID, h.Due = id, fromMicros(due)
				page = append(page, h)
				return err
			})
		return page, err
	}, yield)
}
