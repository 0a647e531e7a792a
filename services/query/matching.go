package query

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"palimpsest/internal/filter"
	"palimpsest/internal/lex"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// narrowing is what searches and lists narrow their rows by, besides their own
// parameters.
type narrowing struct {
	filters  json.RawMessage
	entity   string
	window   string
	episodes bool // they are among the rows
}

// matching returns the filter that n asks for, nil for none.
func (s *Service) matching(ctx context.Context, sel scope.Selector, n narrowing, now time.Time) (*store.Filter, error) {
	var asked, linked, recent filter.Expr
	var err error
	if asked, err = readFilters(n.filters, filter.Memory); err != nil {
		return nil, err
	}
	if n.window != "" {
		if recent, err = within(n.window, now); err != nil {
			return nil, err
		}
	}
	if n.entity != "" {
		if linked, err = s.linked(ctx, sel, n, now); err != nil {
			return nil, err
		}
	}
	e := filter.Both(asked, recent, linked)
	if e == nil {
		return nil, nil //nolint:nilnil // no filter is no error
	}
	return &store.Filter{Expr: e, Now: now}, nil
}

// readFilters returns nil for no text.
func readFilters(raw json.RawMessage, schema filter.Schema) (filter.Expr, error) {
	if len(raw) == 0 {
		return nil, nil //nolint:nilnil // no filter is no error
	}
	e, err := filter.ParseJSON(raw, schema)
	var refused *filter.Error
	if errors.As(err, &refused) {
		return nil, invalid("filters"+refused.Path, "%s", refused.Reason)
	}
	return e, err
}

// within keeps the episodes and the summaries of sessions of a window before now, and
// all other facts.
func within(window string, now time.Time) (filter.Expr, error) {
	length, err := readWindow(window)
	if err != nil {
		return nil, err
	}
	at, err := filter.Memory.Field("event_time")
	if err != nil {
		return nil, err
	}
	since := filter.Cond{Field: at, Op: filter.Gt, Values: []filter.Value{filter.TimeValue(now.Add(-length))}}
	summary := filter.OneOf(filter.Memory, "kind", string(events.FactSummary))
	return filter.Or{filter.And{filter.OneOf(filter.Memory, "type", "fact"), filter.Not{Expr: summary}}, since}, nil
}

// maxWindowDays is some hundred years.
const maxWindowDays = 40_000

// readWindow reads a number of days or a duration.
func readWindow(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= maxWindowDays {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	} else if length, err := time.ParseDuration(text); err == nil && length > 0 && length <= maxWindowDays*24*time.Hour {
		return length, nil
	}
	return 0, invalid("episode_window", "%q is neither a number of days (30d) nor a duration (12h)", lex.Clip(text))
}

// linked keeps the facts that mention an entity, found by its name or an alias, and
// the episodes that they came from.
func (s *Service) linked(ctx context.Context, sel scope.Selector, n narrowing, now time.Time) (filter.Expr, error) {
	if sel.User != nil || sel.Agent != nil {
		sel.Session = nil // an entity belongs to a fact scope
	} else if sel.Session == nil {
		return nil, invalid("entity", "is looked for within a user, an agent or a session; name one")
	}
	var owners []scope.Scope
	if err := s.eachOwner(ctx, sel, func(owner scope.Scope) { owners = append(owners, owner) }); err != nil {
		return nil, err
	}
	if len(owners) > maxLimit {
		return nil, invalid("entity", "is looked for in at most %d users and agents, of which this names %d", maxLimit, len(owners))
	}
	any := filter.Or{}
	for _, owner := range owners {
		entities, err := s.deps.Store.Entities(ctx, owner, []string{n.entity})
		if err != nil {
			return nil, err
		}
		if len(entities) == 0 {
			continue
		}
		ids := make([]string, len(entities))
		for i, e := range entities {
			ids[i] = e.ID
		}
		facts := filter.OneOf(filter.Memory, "entity_ids", ids...)
		any = append(any, facts)
		if !n.episodes {
			continue
		}
		sources, err := s.sources(ctx, owner, facts, now)
		if err != nil {
			return nil, err
		}
		any = append(any, append(ownedBy(owner), filter.OneOf(filter.Memory, "type", "episode"), filter.OneOf(filter.Memory, "id", sources...)))
	}
	return any, nil
}

// sources are the ids of the episodes that the facts which match came from.
func (s *Service) sources(ctx context.Context, owner scope.Scope, matching filter.Expr, now time.Time) (ids []string, err error) {
	q := store.FactQuery{Limit: maxLimit, ValidAt: now, Filter: &store.Filter{Expr: matching, Now: now}}
	known := map[string]bool{}
	for {
		page, err := s.deps.Store.Facts(ctx, scope.Exactly(owner), q)
		if err != nil {
			return nil, err
		}
		for _, f := range page {
			for _, id := range f.SourceEpisodeIDs {
				if !known[id] {
					known[id] = true
					ids = append(ids, id)
				}
			}
			q.Cursor = &store.FactCursor{CreatedAt: f.CreatedAt, ID: f.ID}
		}
		if len(page) < maxLimit {
			return ids, nil
		}
	}
}

// ownedBy keeps the episodes of one fact scope.
func ownedBy(owner scope.Scope) filter.And {
	var all filter.And
	for _, level := range []struct{ name, id string }{{"user", owner.User}, {"agent", owner.Agent}, {"session", owner.Session}} {
		switch {
		case level.id != "":
			all = append(all, filter.OneOf(filter.Memory, level.name, level.id))
		case level.name != "session":
			all = append(all, filter.Not{Expr: filter.Present(filter.Memory, level.name)})
		}
	}
	return all
}
