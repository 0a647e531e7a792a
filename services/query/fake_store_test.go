package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// fakeStore holds what a test puts into it. Its error, where set, is that of
// every call.
type fakeStore struct {
	mu       sync.Mutex
	err      error
	lost     error // what a read ends with during which rows were lost
	episodes []memory.Episode
	facts    []store.Fact
	versions []store.Fact
	holds    []store.Hold
	entities map[scope.Scope][]events.Entity
	edges    map[scope.Scope][]events.Edge
	ends     map[scope.Scope][]events.SessionEnd
	states   map[scope.Scope]memory.State
	outcomes map[string][]events.Outcome // by project and correlation id
	requests map[string]store.Request
	finish   error
	accounts []store.Account
	text     []store.Hit
	textErr  error
	vector   []store.Hit
	asked    []store.SearchQuery
	selected []scope.Selector
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		entities: map[scope.Scope][]events.Entity{}, edges: map[scope.Scope][]events.Edge{}, states: map[scope.Scope]memory.State{},
		outcomes: map[string][]events.Outcome{}, requests: map[string]store.Request{},
	}
}

func (f *fakeStore) do(change func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	change()
	return nil
}

func (f *fakeStore) ReadWhole(_ context.Context, read func() error) error {
	return cmp.Or(read(), f.lost)
}

func (f *fakeStore) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeStore) settle(project string, o events.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outcomes[project+"|"+o.CorrelationID] = append(f.outcomes[project+"|"+o.CorrelationID], o)
}

func (f *fakeStore) put(e memory.Episode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.episodes = append(f.episodes, e)
}

func (f *fakeStore) Episode(_ context.Context, s scope.Scope, source, id string) (memory.Episode, error) {
	var out memory.Episode
	found := false
	err := f.do(func() {
		for _, e := range f.episodes {
			if e.Scope == s && e.ID == id && (source == "" || source == e.Source) {
				out, found = e, true
			}
		}
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return out, err
}

func (f *fakeStore) EpisodesByID(_ context.Context, fact scope.Scope, ids []string) (out []memory.Episode, err error) {
	err = f.do(func() {
		for _, e := range f.episodes {
			if e.Scope.Fact() == fact && slices.Contains(ids, e.ID) {
				out = append(out, e)
			}
		}
	})
	return out, err
}

func (f *fakeStore) EpisodeRange(_ context.Context, fact scope.Scope, r events.Range) (out []memory.Episode, err error) {
	err = f.do(func() {
		for _, e := range f.episodes {
			if e.Scope.Fact() == fact && e.Ordinal > r.From && e.Ordinal <= r.To {
				out = append(out, e)
			}
		}
	})
	return out, err
}

func (f *fakeStore) EpisodesBefore(context.Context, scope.Scope, uint64, int) ([]memory.Episode, error) {
	panic("query reads no ranges")
}

func (f *fakeStore) Recent(_ context.Context, sel scope.Selector, q store.RecentQuery) (out []memory.Episode, err error) {
	err = f.do(func() {
		for _, e := range f.episodes {
			switch {
			case !sel.Match(e.Scope), !q.After.IsZero() && !e.Timestamp.After(q.After), !q.Before.IsZero() && !e.Timestamp.Before(q.Before):
			case q.Cursor != nil && !q.Precedes(*q.Cursor, store.CursorOf(e)), !q.Filter.KeepsEpisode(&e):
			default:
				out = append(out, e)
			}
		}
		slices.SortFunc(out, func(a, b memory.Episode) int {
			if q.Precedes(store.CursorOf(a), store.CursorOf(b)) {
				return -1
			}
			return 1
		})
		out = out[:min(q.Limit, len(out))]
	})
	return out, err
}

func (f *fakeStore) Sessions(ctx context.Context, sel scope.Selector, q store.SessionQuery) (out []scope.Scope, err error) {
	said, err := f.Recent(ctx, sel, store.RecentQuery{Limit: maxLimit, Oldest: true, Before: q.Before})
	for _, e := range said {
		if e.Scope.Session != "" && !slices.Contains(out, e.Scope) {
			out = append(out, e.Scope)
		}
	}
	if q.Newest {
		slices.Reverse(out)
	}
	out = out[min(q.Skip, len(out)):]
	return out[:min(q.Limit, len(out))], err
}

func (f *fakeStore) EndsAbove(_ context.Context, fact scope.Scope, from uint64) (out []events.SessionEnd, err error) {
	err = f.do(func() {
		for _, e := range f.ends[fact] {
			if e.LastOrdinal > from {
				out = append(out, e)
			}
		}
	})
	return out, err
}

func (f *fakeStore) Decayed(_ context.Context, q store.DecayQuery) (out []store.Decayed, err error) {
	err = f.do(func() {
		for _, x := range f.facts {
			if x.Scope == *q.Scope && x.DueBy(q.At) && len(out) < q.Limit {
				out = append(out, store.Decayed{Scope: x.Scope, ID: x.ID})
			}
		}
	})
	return out, err
}

func (f *fakeStore) Undescribed(_ context.Context, q store.DecayQuery) (out []store.Decayed, err error) {
	err = f.do(func() {
		for _, e := range f.entities[*q.Scope] {
			if at, due := memory.DescribeAt(e); due && !at.After(q.At) && len(out) < q.Limit {
				out = append(out, store.Decayed{Scope: *q.Scope, ID: e.ID})
			}
		}
	})
	return out, err
}

func (f *fakeStore) EntitiesByID(context.Context, scope.Scope, []string) ([]events.Entity, error) {
	panic("query waits for no summary here")
}

func (f *fakeStore) State(_ context.Context, fact scope.Scope) (out memory.State, err error) {
	err = f.do(func() {
		out = f.states[fact]
		out.Scope = fact
	})
	return out, err
}

func (f *fakeStore) Fact(_ context.Context, sel scope.Selector, id string) (store.Fact, error) {
	return f.find(f.facts, func(x store.Fact) bool { return sel.Match(x.Scope) && x.ID == id })
}

func (f *fakeStore) Version(_ context.Context, sel scope.Selector, at memory.Address) (store.Fact, error) {
	return f.find(slices.Concat(f.facts, f.versions), func(x store.Fact) bool {
		return sel.Match(x.Scope) && x.ID == at.ID && x.Revision == at.Revision
	})
}

func (f *fakeStore) find(list []store.Fact, match func(store.Fact) bool) (out store.Fact, err error) {
	found := false
	err = f.do(func() {
		if i := slices.IndexFunc(list, match); i >= 0 {
			out, found = list[i], true
		}
	})
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return out, err
}

func (f *fakeStore) Versions(_ context.Context, sel scope.Selector, id string) (out []store.Fact, err error) {
	err = f.do(func() {
		for _, x := range slices.Concat(f.versions, f.facts) {
			if sel.Match(x.Scope) && x.ID == id {
				out = append(out, x)
			}
		}
	})
	return out, err
}

func (f *fakeStore) Facts(_ context.Context, sel scope.Selector, q store.FactQuery) (out []store.Fact, err error) {
	err = f.do(func() {
		newer := func(a, b store.FactCursor) int {
			if n := b.CreatedAt.Compare(a.CreatedAt); n != 0 {
				return n
			}
			return strings.Compare(b.ID, a.ID)
		}
		for _, x := range f.facts {
			if held := q.Held([]store.Fact{x}, f.versions); len(held) > 0 && sel.Match(x.Scope) {
				x = held[0]
			} else {
				continue
			}
			switch {
			case !q.Keeps(x), !q.Filter.KeepsFact(&x), q.Earlier && !slices.ContainsFunc(f.versions, func(v store.Fact) bool { return memory.AddressOf(v.Fact) == memory.AddressOf(x.Fact) }):
			case q.Cursor != nil && newer(*q.Cursor, store.FactCursor{CreatedAt: x.CreatedAt, ID: x.ID}) >= 0:
			default:
				out = append(out, x)
			}
		}
		slices.SortFunc(out, func(a, b store.Fact) int {
			return newer(store.FactCursor{CreatedAt: a.CreatedAt, ID: a.ID}, store.FactCursor{CreatedAt: b.CreatedAt, ID: b.ID})
		})
		out = out[:min(q.Limit, len(out))]
	})
	return out, err
}

func (f *fakeStore) FactsByID(context.Context, scope.Scope, []string) ([]store.Fact, error) {
	panic("query decides nothing")
}

func (f *fakeStore) FactsByHash(context.Context, scope.Scope, []string) ([]store.Fact, error) {
	panic("query decides nothing")
}

func (f *fakeStore) FactsByTriple(context.Context, scope.Scope, []events.Triple) ([]store.Fact, error) {
	panic("not read by the query service")
}

func (f *fakeStore) FactsByPredicate(context.Context, scope.Scope, string, string) ([]store.Fact, error) {
	panic("query decides nothing")
}

func (f *fakeStore) Holds(context.Context, scope.Scope) ([]events.Hold, error) {
	panic("query decides nothing")
}

// ListHolds filters and limits the holds of the fake, which are in order.
func (f *fakeStore) ListHolds(_ context.Context, sel scope.Selector, q store.HoldQuery) (out []store.Hold, err error) {
	err = f.do(func() {
		for _, h := range f.holds {
			behind := true
			if c := q.Cursor; c != nil {
				behind = cmp.Or(h.HeldAt.Compare(c.HeldAt), cmp.Compare(h.ID, c.ID), cmp.Compare(h.Scope.Key(), c.Key)) > 0
			}
			if sel.Match(h.Scope) && behind && (q.ID == "" || q.ID == h.ID) && (q.FactID == "" || q.FactID == h.FactID) && len(out) < q.Limit {
				out = append(out, h)
			}
		}
	})
	return out, err
}

func (f *fakeStore) Entities(_ context.Context, fact scope.Scope, names []string) (out []events.Entity, err error) {
	err = f.do(func() { out = slices.Clone(f.entities[fact]) })
	return slices.DeleteFunc(out, func(e events.Entity) bool {
		return names != nil && !slices.Contains(names, e.CanonicalName)
	}), err
}

func (f *fakeStore) Edges(_ context.Context, fact scope.Scope, nodes []string) (out []events.Edge, err error) {
	err = f.do(func() { out = slices.Clone(f.edges[fact]) })
	return slices.DeleteFunc(out, func(e events.Edge) bool {
		return nodes != nil && !slices.Contains(nodes, e.SourceID) && !slices.Contains(nodes, e.TargetID)
	}), err
}

func (f *fakeStore) Outcomes(_ context.Context, project, correlationID string) (out []events.Outcome, err error) {
	err = f.do(func() { out = slices.Clone(f.outcomes[project+"|"+correlationID]) })
	return out, err
}

func (f *fakeStore) Begin(_ context.Context, r store.Request) (earlier *store.Request, err error) {
	var mismatch bool
	err = f.do(func() {
		key := r.Project + "|" + r.Route + "|" + r.Key
		if known, ok := f.requests[key]; ok {
			earlier, mismatch = &known, known.BodyHash != r.BodyHash
			return
		}
		r.Status, r.Body = 0, nil
		f.requests[key] = r
	})
	if mismatch {
		return nil, store.ErrMismatch
	}
	return earlier, err
}

func (f *fakeStore) Finish(_ context.Context, r store.Request) error {
	err := f.do(func() {
		if f.finish == nil {
			f.requests[r.Project+"|"+r.Route+"|"+r.Key] = r
		}
	})
	if err == nil {
		err = f.finish
	}
	return err
}

func (f *fakeStore) Projects(context.Context) (projects []string, err error) {
	err = f.do(func() {
		for _, x := range f.facts {
			if !slices.Contains(projects, x.Scope.Project) {
				projects = append(projects, x.Scope.Project)
			}
		}
	})
	slices.Sort(projects)
	return projects, err
}
