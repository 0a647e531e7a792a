package sqlite

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestSearchFollowsWrites holds text searches over two scopes to the formula,
// while facts are added, rewritten and archived and lists stay in memory, come
// and go, or never stay.
func TestSearchFollowsWrites(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]int64{"all": 0, "few": 4 * (bookBytes + 100), "none": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db"), TextMemory: memory})
			run := 0
			rapid.Check(t, func(t *rapid.T) {
				run++
				h := history{s: s, project: fmt.Sprintf("p%d", run), texts: make(naive, 2), revision: make([]uint64, 2)}
				for range rapid.IntRange(1, 12).Draw(t, "steps") {
					h.write(t)
					h.search(t)
				}
			})
		})
	}
}

// history is what was written; a fact's row is its place in the order of their
// first writes.
type history struct {
	s        *Store
	project  string
	texts    naive // by scope
	revision []uint64
	facts    []events.Fact
}

var historyWords = []string{"tea", "cup", "oslo", "hike", "ski", "nora", "41"}

func (h *history) write(t *rapid.T) {
	e := events.EffectCommitted{Rule: "turn", CommittedAt: time.Unix(1, 0)}
	at := rapid.IntRange(0, 1).Draw(t, "scope")
	h.revision[at]++
	e.Scope, e.Revision = scope.Scope{Project: h.project, User: fmt.Sprint(at)}, h.revision[at]
	if h.texts[at] == nil {
		h.texts[at] = map[int64][]string{}
	}
	touched := map[int64]bool{}
	for range rapid.IntRange(1, 4).Draw(t, "facts") {
		row := int64(rapid.IntRange(0, len(h.facts)).Draw(t, "row"))
		if _, ours := h.texts[at][row]; row < int64(len(h.facts)) && !ours || touched[row] {
			continue
		}
		touched[row] = true
		words := rapid.SliceOfN(rapid.SampledFrom(historyWords), 0, 8).Draw(t, "words")
		if row == int64(len(h.facts)) {
			h.facts = append(h.facts, events.Fact{ID: fmt.Sprintf("f%d", row), Kind: events.FactSemantic, CreatedAt: time.Unix(row, 0)})
		}
		f := &h.facts[row]
		f.Revision, f.Text, f.ArchivedAt = f.Revision+1, strings.Join(words, " "), nil
		if rapid.IntRange(0, 4).Draw(t, "archive") == 0 {
			f.ArchivedAt = &f.CreatedAt
		}
		h.texts[at][row] = indexTerms(f.Text)
		e.Facts = append(e.Facts, *f)
	}
	if err := h.s.Apply(t.Context(), e, e.Revision); err != nil {
		t.Fatal(err)
	}
}

func (h *history) search(t *rapid.T) {
	words := rapid.SliceOfNDistinct(rapid.SampledFrom(historyWords), 1, 4, rapid.ID[string]).Draw(t, "query")
	sel, texts := scope.Selector{Project: h.project}, h.texts
	if one := rapid.IntRange(0, 2).Draw(t, "among"); one < 2 {
		user := fmt.Sprint(one)
		sel.User, texts = &user, h.texts[one:one+1]
	}
	terms := indexTerms(strings.Join(words, " "))
	want := texts.rank(terms)
	limit := rapid.IntRange(1, 20).Draw(t, "limit")
	hits, err := h.s.SearchText(t.Context(), sel, strings.Join(words, " "), store.SearchQuery{Target: store.Facts, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	scores := map[string]candidate{}
	want = slices.DeleteFunc(want, func(c candidate) bool { return h.facts[c.row].ArchivedAt != nil })
	for _, c := range want {
		scores[h.facts[c.row].ID] = c
	}
	if len(hits) != min(limit, len(want)) {
		t.Fatalf("%d hits of %d, limit %d", len(hits), len(want), limit)
	}
	for i, hit := range hits {
		// Rounding may swap documents that score the same.
		own, known := scores[hit.Fact.ID]
		if !known || !near(hit.Score, want[i].score) || !near(own.score, want[i].score) {
			t.Fatalf("at %d: %s with %g, want %s with %g", i, hit.Fact.ID, hit.Score, h.facts[want[i].row].ID, want[i].score)
		}
		delete(scores, hit.Fact.ID)
		if f := h.facts[own.row]; hit.Fact.Text != f.Text || hit.Fact.Revision != f.Revision {
			t.Fatalf("%s is %q@%d, want %q@%d", f.ID, hit.Fact.Text, hit.Fact.Revision, f.Text, f.Revision)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*b }

// TestHitsAreTheCallersOwn: what a caller does to a hit, the next does not see.
func TestHitsAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	until := time.Unix(9e9, 0).UTC()
	e := events.EffectCommitted{Rule: "turn", Revision: 1, CommittedAt: time.Unix(1, 0), Facts: []events.Fact{{
		ID: "f", Revision: 1, Kind: events.FactSemantic, Text: "drinks tea", SessionIDs: []string{"s"}, ValidUntil: &until,
		Metadata: map[string]any{"a": []any{map[string]any{"b": "c"}}},
	}}}
	e.Scope = scope.Scope{Project: "p", User: "u"}
	if err := s.Apply(t.Context(), e, 1); err != nil {
		t.Fatal(err)
	}
	episode := testEpisode("u", "e")
	episode.Content, episode.Metadata = "drinks tea", map[string]any{"a": "b"}
	if _, err := s.PutEpisode(t.Context(), episode); err != nil {
		t.Fatal(err)
	}
	var first []store.Hit
	for round := range 3 {
		var hits []store.Hit
		for _, target := range []store.Target{store.Facts, store.Episodes} {
			list, err := s.SearchText(t.Context(), scope.Selector{Project: "p"}, "tea", store.SearchQuery{Target: target, Limit: 5})
			if err != nil || len(list) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			hits = append(hits, list...)
		}
		if round == 0 {
			first = []store.Hit{cloneHit(hits[0]), cloneHit(hits[1])}
		}
		if diff := cmp.Diff(first, hits); diff != "" {
			t.Fatalf("round %d (-want +got):\n%s", round, diff)
		}
		f := hits[0].Fact
		f.Text, f.SessionIDs[0], *f.ValidUntil = "", "", time.Time{}
		f.Metadata["a"].([]any)[0].(map[string]any)["b"] = 1 //nolint:forcetypeassert // put above
		hits[1].Episode.Metadata["a"] = 1
	}
}
