package query

import (
	"context"
	"slices"
	"strings"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// past is what effects had made of fact scopes at an instant: the newest version of
// each fact, and the earlier ones.
type past struct {
	facts    map[string]store.Fact // by scope and id
	versions map[string]store.Fact // by scope and address
}

// knownAt replays the effects within sel that were committed by an instant. What
// AUDIT has dropped comes from the audit log.
func (s *Service) knownAt(ctx context.Context, sel scope.Selector, at time.Time) (past, error) {
	p := past{facts: map[string]store.Fact{}, versions: map[string]store.Fact{}}
	effects, err := s.effects(ctx, replay{sel: sel, to: at.Add(time.Nanosecond)}, false)
	if err != nil {
		return p, err
	}
	for e, err := range effects(ctx) {
		if err != nil {
			return p, err
		}
		key := e.Data.Scope.String()
		for _, f := range e.Data.Facts {
			p.facts[key+" "+f.ID] = asCommitted(f, e.Data.Scope)
		}
		for _, f := range e.Data.Versions {
			p.versions[key+" "+memory.AddressOf(f).String()] = asCommitted(f, e.Data.Scope)
		}
	}
	return p, nil
}

// asCommitted is a version without the accesses that came later.
func asCommitted(f events.Fact, of scope.Scope) store.Fact {
	f = store.WholeMicros(f)
	return store.Fact{Fact: f, Scope: of, Strength: f.Confidence, LastAccessed: f.CreatedAt}
}

// list is what a list of the store would have been.
func (p past) list(q store.FactQuery) []store.Fact {
	var newest, earlier []store.Fact
	for _, f := range p.facts {
		newest = append(newest, f)
	}
	for _, f := range p.versions {
		earlier = append(earlier, f)
	}
	out := slices.DeleteFunc(q.Held(newest, earlier), func(f store.Fact) bool {
		behind := q.Cursor == nil || newestFirst(store.Fact{Fact: events.Fact{CreatedAt: q.Cursor.CreatedAt, ID: q.Cursor.ID}}, f) < 0
		return !behind || !q.Keeps(f) || !q.Filter.KeepsFact(&f)
	})
	slices.SortFunc(out, newestFirst)
	return out[:min(len(out), q.Limit)]
}

func newestFirst(a, b store.Fact) int {
	if n := b.CreatedAt.Compare(a.CreatedAt); n != 0 {
		return n
	}
	return strings.Compare(b.ID, a.ID)
}

// factsAsOf lists what was known at an instant, which it returns, too.
func (s *Service) factsAsOf(ctx context.Context, sel scope.Selector, q store.FactQuery, in *listFactsInput) (at time.Time, list []store.Fact, err error) {
	if at, err = instant("as_of", in.AsOf); err != nil {
		return at, nil, err
	}
	if in.Entity != "" {
		return at, nil, invalid("entity", "is looked for in what is known now; leave it out beside as_of")
	}
	if in.ValidAt == "" && !in.Closed {
		q.ValidAt = at
	}
	if q.Filter != nil {
		q.Filter.Now = at
	}
	p, err := s.knownAt(ctx, sel, at)
	return at, p.list(q), err
}

// factAsOf returns a fact as it was known at an instant, which it returns, too, in
// the version that was true then, or at another that is named; or
// [store.ErrNotFound].
func (s *Service) factAsOf(ctx context.Context, in *getFactInput) (at time.Time, f store.Fact, err error) {
	if at, err = instant("as_of", in.AsOf); err != nil {
		return at, f, err
	}
	validAt := at
	if in.ValidAt != "" {
		if validAt, err = instant("valid_at", in.ValidAt); err != nil {
			return at, f, err
		}
	}
	if f, err = s.factOf(ctx, &in.FactParam); err != nil {
		return at, f, err
	}
	p, err := s.knownAt(ctx, scope.Exactly(f.Scope), at)
	if err != nil {
		return at, f, err
	}
	for _, known := range p.list(store.FactQuery{ValidAt: validAt, IncludeArchived: true, Limit: len(p.facts)}) {
		if known.ID == f.ID {
			return at, known, nil
		}
	}
	return at, f, store.ErrNotFound
}
