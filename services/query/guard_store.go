package query

import (
	"context"

	"palimpsest/internal/memory"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// guardedStore guards a [Store].
type guardedStore struct{ next Store }

func (g guardedStore) Episode(ctx context.Context, s scope.Scope, source, id string) (memory.Episode, error) {
	if err := reached(ctx, s); err != nil {
		return memory.Episode{}, err
	}
	return g.next.Episode(ctx, s, source, id)
}

func (g guardedStore) EpisodesByID(ctx context.Context, fact scope.Scope, ids []string) ([]memory.Episode, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.EpisodesByID(ctx, fact, ids)
}

func (g guardedStore) EpisodeRange(ctx context.Context, fact scope.Scope, r events.Range) ([]memory.Episode, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.EpisodeRange(ctx, fact, r)
}

func (g guardedStore) EpisodesBefore(ctx context.Context, session scope.Scope, ordinal uint64, n int) ([]memory.Episode, error) {
	if err := reached(ctx, session); err != nil {
		return nil, err
	}
	return g.next.EpisodesBefore(ctx, session, ordinal, n)
}

func (g guardedStore) Recent(ctx context.Context, sel scope.Selector, q store.RecentQuery) ([]memory.Episode, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	return g.next.Recent(ctx, sel, q)
}

func (g guardedStore) Sessions(ctx context.Context, sel scope.Selector, q store.SessionQuery) ([]scope.Scope, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	return g.next.Sessions(ctx, sel, q)
}

func (g guardedStore) ReadWhole(ctx context.Context, read func() error) error {
	return g.next.ReadWhole(ctx, read)
}

func (g guardedStore) State(ctx context.Context, fact scope.Scope) (memory.State, error) {
	if err := reached(ctx, fact); err != nil {
		return memory.State{}, err
	}
	return g.next.State(ctx, fact)
}

func (g guardedStore) EndsAbove(ctx context.Context, fact scope.Scope, from uint64) ([]events.SessionEnd, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.EndsAbove(ctx, fact, from)
}

func (g guardedStore) Decayed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error) {
	if q.Scope == nil {
		return nil, store.ErrNotFound // no caller may read all projects
	}
	if err := reached(ctx, *q.Scope); err != nil {
		return nil, err
	}
	return g.next.Decayed(ctx, q)
}

func (g guardedStore) Undescribed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error) {
	if q.Scope == nil {
		return nil, store.ErrNotFound // no caller may read all projects
	}
	if err := reached(ctx, *q.Scope); err != nil {
		return nil, err
	}
	return g.next.Undescribed(ctx, q)
}

func (g guardedStore) Fact(ctx context.Context, sel scope.Selector, id string) (store.Fact, error) {
	if err := inProject(ctx, sel.Project); err != nil {
		return store.Fact{}, err
	}
	f, err := g.next.Fact(ctx, sel, id)
	return ownFact(ctx, f, err)
}

func (g guardedStore) Version(ctx context.Context, sel scope.Selector, at memory.Address) (store.Fact, error) {
	if err := inProject(ctx, sel.Project); err != nil {
		return store.Fact{}, err
	}
	f, err := g.next.Version(ctx, sel, at)
	return ownFact(ctx, f, err)
}

func ownFact(ctx context.Context, f store.Fact, err error) (store.Fact, error) {
	if err == nil {
		err = reached(ctx, f.Scope)
	}
	if err != nil {
		return store.Fact{}, err
	}
	return f, nil
}

func (g guardedStore) Versions(ctx context.Context, sel scope.Selector, id string) ([]store.Fact, error) {
	if err := inProject(ctx, sel.Project); err != nil {
		return nil, err
	}
	all, err := g.next.Versions(ctx, sel, id)
	if err != nil {
		return nil, err
	}
	if all = kept(ctx, all, factScope); len(all) == 0 {
		return nil, errElsewhere
	}
	return all, nil
}

func factScope(f store.Fact) scope.Scope { return f.Scope }

func (g guardedStore) Facts(ctx context.Context, sel scope.Selector, q store.FactQuery) ([]store.Fact, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	return g.next.Facts(ctx, sel, q)
}

func (g guardedStore) FactsByID(ctx context.Context, fact scope.Scope, ids []string) ([]store.Fact, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.FactsByID(ctx, fact, ids)
}

func (g guardedStore) FactsByHash(ctx context.Context, fact scope.Scope, hashes []string) ([]store.Fact, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.FactsByHash(ctx, fact, hashes)
}

func (g guardedStore) FactsByPredicate(ctx context.Context, fact scope.Scope, subject, predicate string) ([]store.Fact, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.FactsByPredicate(ctx, fact, subject, predicate)
}

func (g guardedStore) FactsByTriple(ctx context.Context, fact scope.Scope, ts []events.Triple) ([]store.Fact, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.FactsByTriple(ctx, fact, ts)
}

func (g guardedStore) Entities(ctx context.Context, fact scope.Scope, names []string) ([]events.Entity, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.Entities(ctx, fact, names)
}

func (g guardedStore) EntitiesByID(ctx context.Context, fact scope.Scope, ids []string) ([]events.Entity, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.EntitiesByID(ctx, fact, ids)
}

func (g guardedStore) Edges(ctx context.Context, fact scope.Scope, nodes []string) ([]events.Edge, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.Edges(ctx, fact, nodes)
}

func (g guardedStore) Holds(ctx context.Context, fact scope.Scope) ([]events.Hold, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.Holds(ctx, fact)
}

// ListHolds narrows a list, and looks whose the one of an id is.
func (g guardedStore) ListHolds(ctx context.Context, sel scope.Selector, q store.HoldQuery) ([]store.Hold, error) {
	if q.ID == "" {
		var err error
		if sel, err = narrowed(ctx, sel); err != nil {
			return nil, err
		}
	}
	if err := inProject(ctx, sel.Project); err != nil {
		return nil, err
	}
	all, err := g.next.ListHolds(ctx, sel, q)
	return kept(ctx, all, func(h store.Hold) scope.Scope { return h.Scope }), err
}

func (g guardedStore) Outcomes(ctx context.Context, project, correlationID string) ([]events.Outcome, error) {
	if err := inProject(ctx, project); err != nil {
		return nil, err
	}
	return g.next.Outcomes(ctx, project, correlationID)
}

func (g guardedStore) Begin(ctx context.Context, r store.Request) (*store.Request, error) {
	if err := inProject(ctx, r.Project); err != nil {
		return nil, err
	}
	return g.next.Begin(ctx, r)
}

func (g guardedStore) Finish(ctx context.Context, r store.Request) error {
	if err := inProject(ctx, r.Project); err != nil {
		return err
	}
	return g.next.Finish(ctx, r)
}

func (g guardedStore) Projects(ctx context.Context) ([]string, error) {
	all, err := g.next.Projects(ctx)
	var own []string
	for _, project := range all {
		if inProject(ctx, project) == nil {
			own = append(own, project)
		}
	}
	return own, err
}

func (g guardedStore) Scopes(ctx context.Context, sel scope.Selector, yield func(scope.Scope) bool) error {
	if err := inProject(ctx, sel.Project); err != nil {
		return err
	}
	return g.next.Scopes(ctx, sel, func(s scope.Scope) bool { return reached(ctx, s) != nil || yield(s) })
}

func (g guardedStore) Snapshot(ctx context.Context, fact scope.Scope) (store.Snapshot, error) {
	if err := reached(ctx, fact); err != nil {
		return store.Snapshot{}, err
	}
	return g.next.Snapshot(ctx, fact)
}

func (g guardedStore) Accounts(ctx context.Context, sel scope.Selector, rules []string) ([]store.Account, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	return g.next.Accounts(ctx, sel, rules)
}

// guardedSearcher guards a [retrieval.Store]; the graph is guarded by itself.
type guardedSearcher struct {
	next retrieval.Store
	retrieval.Graph
}

func (g guardedSearcher) SearchText(ctx context.Context, sel scope.Selector, text string, q store.SearchQuery) ([]store.Hit, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	return g.next.SearchText(ctx, sel, text, q)
}

func (g guardedSearcher) SearchVector(ctx context.Context, sel scope.Selector, vector []float32, q store.SearchQuery) ([]store.Hit, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	return g.next.SearchVector(ctx, sel, vector, q)
}

func (g guardedSearcher) EpisodesAt(ctx context.Context, fact scope.Scope, ordinals []uint64) ([]memory.Episode, error) {
	if err := reached(ctx, fact); err != nil {
		return nil, err
	}
	return g.next.EpisodesAt(ctx, fact, ordinals)
}

// Spaces tells of vectors in general.
func (g guardedSearcher) Spaces() store.Spaces { return g.next.Spaces() }

func (g guardedSearcher) Recent(ctx context.Context, sel scope.Selector, q store.RecentQuery) ([]memory.Episode, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	return g.next.Recent(ctx, sel, q)
}

func (g guardedSearcher) Sessions(ctx context.Context, sel scope.Selector, q store.SessionQuery) ([]scope.Scope, error) {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return nil, err
	}
	return g.next.Sessions(ctx, sel, q)
}
