package ingest

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Earlier is the store that another is to take the place of.
type Earlier interface {
	store.EpisodeReader
	store.StateReader
	store.Exporter
}

// Adopt stores what an earlier store holds, so that each episode has the ordinal
// that it had: EPISODES may have dropped the oldest. It calls read with each
// episode. Without it [Service.Rebuild] would count from the oldest that is left.
func (s *Service) Adopt(ctx context.Context, from Earlier, read func()) error {
	err := each(ctx, from, func(fact scope.Scope, r events.Range) error {
		page, err := from.EpisodeRange(ctx, fact, r)
		if err != nil {
			return err
		}
		if _, err := s.deps.Episodes.PutEpisodes(ctx, page); err != nil {
			return fmt.Errorf("store episodes %d to %d of %s: %w", r.From+1, r.To, fact, err)
		}
		for range page {
			read()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("adopt episodes: %w", err)
	}
	return nil
}

// Moved counts the places of an earlier store at which the one that is to take
// its place has another episode, or only one of them has any. Ranges and
// watermarks name episodes by their places.
func Moved(ctx context.Context, from Earlier, now store.EpisodeReader) (count int, err error) {
	type name struct {
		scope      scope.Scope
		source, id string
	}
	err = each(ctx, from, func(fact scope.Scope, r events.Range) error {
		places := map[uint64]name{}
		before, err := from.EpisodeRange(ctx, fact, r)
		if err != nil {
			return err
		}
		for _, e := range before {
			places[e.Ordinal] = name{e.Scope, e.Source, e.ID}
		}
		after, err := now.EpisodeRange(ctx, fact, r)
		if err != nil {
			return err
		}
		for _, e := range after {
			if places[e.Ordinal] != (name{e.Scope, e.Source, e.ID}) {
				count++
			}
			delete(places, e.Ordinal)
		}
		count += len(places)
		return nil
	})
	if err != nil {
		return count, fmt.Errorf("compare episodes: %w", err)
	}
	return count, nil
}

// pageSize is how many places are looked at together.
const pageSize = 200

// each calls visit with every fact scope of a store, range by range.
func each(ctx context.Context, from Earlier, visit func(scope.Scope, events.Range) error) error {
	projects, err := from.Projects(ctx)
	if err != nil {
		return err
	}
	for _, project := range projects {
		var failed error
		err := from.Scopes(ctx, scope.Selector{Project: project}, func(fact scope.Scope) bool {
			state, err := from.State(ctx, fact)
			for at := uint64(0); err == nil && at < state.LastOrdinal; at += pageSize {
				err = visit(fact, events.Range{From: at, To: min(at+pageSize, state.LastOrdinal)})
			}
			failed = err
			return err == nil
		})
		if err := errors.Join(failed, err); err != nil {
			return err
		}
	}
	return nil
}
