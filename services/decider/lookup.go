package decider

import (
	"context"
	"errors"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// lookup answers a decider's questions from the store, within one fact scope.
type lookup struct {
	deps  Deps
	scope scope.Scope
	at    time.Time
}

// lookup returns what a decision on a state of a scope looks at. Before its first
// effect a scope has nothing to look at, and the store is not asked.
func (s *Service) lookup(fact scope.Scope, at time.Time, state memory.State) decide.Lookup {
	if state.Revision == 0 {
		return nothing{}
	}
	return lookup{s.deps, fact, at}
}

// nothing is the lookup of a scope in which nothing is known.
type nothing struct{}

func (nothing) ByID(context.Context, []string) ([]events.Fact, error)              { return nil, nil }
func (nothing) ByHash(context.Context, []string) ([]events.Fact, error)            { return nil, nil }
func (nothing) ByPredicate(context.Context, string, string) ([]events.Fact, error) { return nil, nil }
func (nothing) ByTriple(context.Context, []events.Triple) ([]events.Fact, error)   { return nil, nil }
func (nothing) Versions(context.Context, string) ([]events.Fact, error)            { return nil, nil }
func (nothing) Similar(context.Context, string, int) ([]events.Fact, error)        { return nil, nil }

var _ decide.Lookup = lookup{}

// ByID implements [decide.Lookup].
func (l lookup) ByID(ctx context.Context, ids []string) ([]events.Fact, error) {
	return bare(l.deps.Facts.FactsByID(ctx, l.scope, ids))
}

// ByHash implements [decide.Lookup].
func (l lookup) ByHash(ctx context.Context, hashes []string) ([]events.Fact, error) {
	return bare(l.deps.Facts.FactsByHash(ctx, l.scope, hashes))
}

// ByPredicate implements [decide.Lookup].
func (l lookup) ByPredicate(ctx context.Context, subject, predicate string) ([]events.Fact, error) {
	return bare(l.deps.Facts.FactsByPredicate(ctx, l.scope, subject, predicate))
}

// ByTriple implements [decide.Lookup].
func (l lookup) ByTriple(ctx context.Context, ts []events.Triple) ([]events.Fact, error) {
	return bare(l.deps.Facts.FactsByTriple(ctx, l.scope, ts))
}

// Versions implements [decide.Lookup].
func (l lookup) Versions(ctx context.Context, id string) ([]events.Fact, error) {
	versions, err := bare(l.deps.Facts.Versions(ctx, scope.Exactly(l.scope), id))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return versions, err
}

// Similar implements [decide.Lookup].
func (l lookup) Similar(ctx context.Context, text string, limit int) ([]events.Fact, error) {
	hits, err := l.deps.Search.SearchText(ctx, scope.Exactly(l.scope), text, store.SearchQuery{
		Target: store.Facts, Limit: limit, ValidAt: l.at,
	})
	if err != nil {
		return nil, err
	}
	facts := make([]events.Fact, 0, len(hits))
	for _, h := range hits {
		if h.Fact != nil {
			facts = append(facts, h.Fact.Fact)
		}
	}
	return facts, nil
}

func bare(facts []store.Fact, err error) ([]events.Fact, error) {
	if err != nil {
		return nil, err
	}
	out := make([]events.Fact, len(facts))
	for i, f := range facts {
		out[i] = f.Fact
	}
	return out, nil
}
