package query

import (
	"context"
	"slices"
	"strings"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

func (f *fakeStore) Scopes(_ context.Context, sel scope.Selector, yield func(scope.Scope) bool) error {
	var scopes []scope.Scope
	err := f.do(func() {
		for _, x := range f.facts {
			if sel.Match(x.Scope) && !slices.Contains(scopes, x.Scope) {
				scopes = append(scopes, x.Scope)
			}
		}
	})
	slices.SortFunc(scopes, func(a, b scope.Scope) int { return strings.Compare(a.Key(), b.Key()) })
	for _, s := range scopes {
		if !yield(s) {
			break
		}
	}
	return err
}

func (f *fakeStore) Snapshot(_ context.Context, fact scope.Scope) (store.Snapshot, error) {
	out := store.Snapshot{Scope: fact, Watermarks: map[string]uint64{"turn": 1}}
	err := f.do(func() {
		for _, x := range f.facts {
			if x.Scope == fact {
				out.Facts = append(out.Facts, x.Fact)
			}
		}
	})
	return out, err
}

func (f *fakeStore) Accounts(_ context.Context, sel scope.Selector, _ []string) (out []store.Account, err error) {
	err = f.do(func() {
		for _, a := range f.accounts {
			if sel.Match(a.Scope) {
				out = append(out, a)
			}
		}
	})
	return out, err
}

func (f *fakeStore) SearchText(_ context.Context, sel scope.Selector, _ string, q store.SearchQuery) (out []store.Hit, err error) {
	err = f.do(func() {
		out, err = pick(f.text, sel, q), f.textErr
		f.asked, f.selected = append(f.asked, q), append(f.selected, sel)
	})
	if err == nil {
		err = f.textErr
	}
	return out, err
}

func (f *fakeStore) SearchVector(_ context.Context, sel scope.Selector, _ []float32, q store.SearchQuery) (out []store.Hit, err error) {
	err = f.do(func() { out = pick(f.vector, sel, q) })
	return out, err
}

func (f *fakeStore) EpisodesAt(context.Context, scope.Scope, []uint64) (out []memory.Episode, err error) {
	return nil, f.do(func() {})
}

func pick(hits []store.Hit, sel scope.Selector, q store.SearchQuery) []store.Hit {
	var out []store.Hit
	for _, h := range hits {
		switch {
		case q.Target == store.Facts && h.Fact != nil && sel.Match(h.Fact.Scope):
			if q.Session == nil || slices.Contains(h.Fact.SessionIDs, *q.Session) {
				out = append(out, h)
			}
		case q.Target == store.Episodes && h.Episode != nil && sel.Match(h.Episode.Scope):
			out = append(out, h)
		}
	}
	return q.Filter.Hits(out)
}

func (*fakeStore) Spaces() store.Spaces {
	return store.Spaces{Served: store.Space{ID: 1, Embedder: (*fakeEmbedder)(nil).Info()}}
}
