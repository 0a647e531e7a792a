package storetest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"palimpsest/internal/filter"
	"palimpsest/internal/filter/filtertest"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// filtersVariable names how many random filters a backend is held to.
const filtersVariable = "TEST_FILTERS"

const fewFilters = 40

// filterFields are the names that random filters draw from, aliases and all.
var filterFields = []string{
	"metadata", "metadata", "metadata", "metadata", "type", "id", "text", "content", "user", "agent", "session", "role", "event_time", "timestamp",
	"created_at", "kind", "category", "subject", "predicate", "object", "hash", "sensitivity", "source_type", "rule_id", "source_episode_ids",
	"revision", "confidence", "confirmed", "access_count", "valid_from", "valid_until", "archived_at", "updated_at", "source_node", "mode", "ordinal",
}

// testMatching: every read that takes a filter returns what the evaluator keeps.
func testMatching(t *testing.T, s suite) {
	st, want := s.open(t), fewFilters
	if text := os.Getenv(filtersVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", filtersVariable, err)
		}
		want = n
	}
	f := fillForFilters(t, st, s.opts.dimensions())
	for seed := range uint64(want) {
		if f.check(t, filtertest.New(seed)); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// filtered is a store and all that is in it.
type filtered struct {
	store.Store
	sel      scope.Selector
	facts    []store.Fact     // in the order of Facts
	episodes []memory.Episode // in the order of Recent
	vector   []float32
}

func fillForFilters(t *testing.T, st store.Store, dimensions int) *filtered {
	t.Helper()
	const rows = 40
	draw := filtertest.New(7)
	scopes := []scope.Scope{{Project: "p", User: "ann"}, {Project: "p", User: "it's", Agent: "bot"}, {Project: "p", Session: "s"}}
	for i, of := range scopes {
		var facts []events.Fact
		for n := range rows / len(scopes) {
			facts = append(facts, draw.Fact(100*i+n))
			e := draw.Episode(100*i+n, of)
			if of.User == "" {
				e.Scope.Session = of.Session
			}
			put(t, st, e)
		}
		apply(t, st, effect(of, 1, withFacts(facts...)))
		if i == 0 { // another version, which began later
			later := next(facts[0], "The word is later.")
			later.ValidFrom = filtertest.Base
			before := facts[0]
			until := later.ValidFrom
			before.ValidUntil = &until
			apply(t, st, effect(of, 2, func(e *events.EffectCommitted) { e.Facts, e.Versions = []events.Fact{later}, []events.Fact{before} }))
		}
	}
	f := &filtered{Store: st, sel: scope.Selector{Project: "p", All: true}, vector: make([]float32, dimensions)}
	f.vector[0] = 1
	texts := must(st.PendingVectors(t.Context(), 0, 1000))(t)
	vectors := make([]store.Vector, len(texts))
	for i, p := range texts {
		values := slices.Clone(f.vector)
		values[1] = float32(i) / float32(len(texts))
		vectors[i] = store.Vector{Ref: p.Ref, Values: values}
	}
	if err := st.PutVectors(t.Context(), vectors); err != nil {
		t.Fatal(err)
	}
	f.facts = must(st.Facts(t.Context(), f.sel, store.FactQuery{Limit: 1000, IncludeArchived: true}))(t)
	f.episodes = must(st.Recent(t.Context(), f.sel, store.RecentQuery{Limit: 1000}))(t)
	if len(f.facts) < rows-3 || len(f.episodes) < rows-3 {
		t.Fatalf("%d facts, %d episodes", len(f.facts), len(f.episodes))
	}
	return f
}

func (f *filtered) check(t *testing.T, draw filtertest.Source) {
	t.Helper()
	x := &store.Filter{Expr: draw.Filter(filter.Memory, filterFields), Now: filtertest.Base.Add(time.Hour)}
	var facts, episodes []string
	for i := range f.facts {
		if x.KeepsFact(&f.facts[i]) {
			facts = append(facts, nameOf(f.facts[i].Scope, f.facts[i].ID))
		}
	}
	for i := range f.episodes {
		if x.KeepsEpisode(&f.episodes[i]) {
			episodes = append(episodes, nameOf(f.episodes[i].Scope, f.episodes[i].ID))
		}
	}
	limit := []int{1, 3, 7, 1000}[draw.IntN(4)]
	equal(t, fmt.Sprintf("Facts of %s", filter.JSON(x.Expr)), facts, f.listFacts(t, x, limit))
	equal(t, fmt.Sprintf("Recent of %s", filter.JSON(x.Expr)), episodes, f.listEpisodes(t, x, limit, false))
	slices.Reverse(episodes)
	equal(t, fmt.Sprintf("the oldest of %s", filter.JSON(x.Expr)), episodes, f.listEpisodes(t, x, limit, true))
	for target, want := range map[store.Target][]string{store.Facts: facts, store.Episodes: episodes} {
		q := store.SearchQuery{Target: target, Limit: limit, Filter: x}
		text := must(f.SearchText(t.Context(), f.sel, "word", q))(t)
		vector := must(f.SearchVector(t.Context(), f.sel, f.vector, q))(t)
		for what, hits := range map[string][]store.Hit{"SearchText": text, "SearchVector": vector} {
			found := map[string]bool{}
			for _, h := range hits {
				name := nameOfHit(h)
				if found[name] = true; !slices.Contains(want, name) {
					t.Errorf("%s found %s, which does not match %s", what, name, filter.JSON(x.Expr))
				}
			}
			if len(found) != min(limit, len(want)) {
				t.Errorf("%s found %d of %d that match %s, limit %d", what, len(found), len(want), filter.JSON(x.Expr), limit)
			}
		}
	}
}

func nameOf(s scope.Scope, id string) string { return s.String() + " " + id }

func nameOfHit(h store.Hit) string {
	if h.Fact != nil {
		return nameOf(h.Fact.Scope, h.Fact.ID)
	}
	return nameOf(h.Episode.Scope, h.Episode.ID)
}

func (f *filtered) listFacts(t *testing.T, x *store.Filter, limit int) (names []string) {
	t.Helper()
	q := store.FactQuery{Limit: limit, Filter: x, IncludeArchived: true}
	for {
		page := must(f.Facts(t.Context(), f.sel, q))(t)
		for _, fact := range page {
			names = append(names, nameOf(fact.Scope, fact.ID))
			q.Cursor = &store.FactCursor{CreatedAt: fact.CreatedAt, ID: fact.ID}
		}
		if len(page) < limit {
			return names
		}
	}
}

func (f *filtered) listEpisodes(t *testing.T, x *store.Filter, limit int, oldest bool) (names []string) {
	t.Helper()
	q := store.RecentQuery{Limit: limit, Filter: x, Oldest: oldest}
	for {
		page := must(f.Recent(t.Context(), f.sel, q))(t)
		for _, e := range page {
			names = append(names, nameOf(e.Scope, e.ID))
			cursor := store.CursorOf(e)
			q.Cursor = &cursor
		}
		if len(page) < limit {
			return names
		}
	}
}

// testMatchingThen: of a fact whose newest version had not begun, a filter is matched
// by the version that held.
func testMatchingThen(t *testing.T, s suite) {
	st := s.open(t)
	of := user("ana", "")
	first := fact("f", 0, "Ana drinks tea.")
	first.Category = "drink"
	second := next(first, "Ana drinks coffee.")
	second.Category, second.ValidFrom = "habit", epoch.Add(time.Hour)
	apply(t, st, effect(of, 1, withFacts(first)))
	until := second.ValidFrom
	first.ValidUntil = &until
	apply(t, st, effect(of, 2, func(e *events.EffectCommitted) { e.Facts, e.Versions = []events.Fact{second}, []events.Fact{first} }))
	for _, tc := range []struct {
		at       time.Time
		category string
		want     []string
	}{
		{epoch, "drink", []string{"Ana drinks tea."}}, {epoch, "habit", nil},
		{epoch.Add(2 * time.Hour), "drink", nil}, {epoch.Add(2 * time.Hour), "habit", []string{"Ana drinks coffee."}},
	} {
		x := &store.Filter{Expr: filter.OneOf(filter.Memory, "category", tc.category)}
		list := must(st.Facts(t.Context(), scope.Under(of), store.FactQuery{Limit: 10, ValidAt: tc.at, Filter: x}))(t)
		var texts []string
		for _, f := range list {
			texts = append(texts, f.Text)
		}
		equal(t, tc.category+" at "+tc.at.String(), tc.want, texts)
	}
}
