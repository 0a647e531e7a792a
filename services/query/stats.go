package query

import (
	"context"
	"time"

	"palimpsest/internal/graph"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

type statsInput struct{ SelectorParams }

type stats struct{ Body api.Stats }

// stats reads all facts, entities and edges within what is asked for.
func (s *Service) stats(ctx context.Context, in *statsInput) (*stats, error) {
	sel, err := s.factSelector(in.SelectorParams)
	if err != nil {
		return nil, err
	}
	out := api.Stats{Kinds: map[string]uint64{}, Types: map[string]uint64{}, Edges: map[string]uint64{}}
	now := s.deps.Now()
	if err := s.countFacts(ctx, sel, now, &out); err != nil {
		return nil, err
	}
	owners, err := s.ownersWithin(ctx, sel)
	if err != nil {
		return nil, err
	}
	for _, owner := range owners {
		if err := s.countGraph(ctx, owner, now, &out); err != nil {
			return nil, err
		}
	}
	return &stats{out}, nil
}

func (s *Service) countFacts(ctx context.Context, sel scope.Selector, now time.Time, out *api.Stats) error {
	q := store.FactQuery{Limit: maxLimit, ValidAt: now}
	for more := true; more; {
		facts, err := s.deps.Store.Facts(ctx, sel, q)
		if err != nil {
			return err
		}
		for _, f := range facts {
			out.Facts++
			out.Kinds[string(f.Kind)]++
			if len(f.EntityIDs) == 0 {
				out.Orphans++
			}
			q.Cursor = &store.FactCursor{CreatedAt: f.CreatedAt, ID: f.ID}
		}
		more = len(facts) == maxLimit
	}
	return nil
}

func (s *Service) countGraph(ctx context.Context, owner scope.Scope, now time.Time, out *api.Stats) error {
	entities, err := s.deps.Store.Entities(ctx, owner, nil)
	if err != nil {
		return err
	}
	for _, e := range entities {
		out.Entities++
		out.Types[string(e.Type)]++
	}
	edges, err := s.deps.Store.Edges(ctx, owner, nil)
	if err != nil {
		return err
	}
	for _, e := range edges {
		if graph.Valid(e, now) {
			out.Relations++
			out.Edges[string(e.Type)]++
		}
	}
	return nil
}
