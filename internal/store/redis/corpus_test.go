package redis

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestWordsAreCountedAsTheIndexCounts, whatever texts take the place of others:
// by what a scope has of its own, by what several have, and by the index.
func TestWordsAreCountedAsTheIndexCounts(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	texts := []string{"blue sky", "blue blue moon", "a sky of stone", "stone", "moon over stone"}
	users := []string{"u1", "u2", "u3"}
	for n, user := range users {
		fact := scope.Scope{Project: "p", User: user}
		for revision := range uint64(6) {
			e := benchEffect(user, revision+1)
			e.Facts = e.Facts[:2]
			for i := range e.Facts {
				f := &e.Facts[i]
				f.ID, f.Revision = fmt.Sprintf("%s-%d", user, i), revision+1
				f.Text = texts[(int(revision)+3*i+n)%len(texts)]
				f.Hash = memory.HashText(f.Text)
			}
			if err := s.Apply(t.Context(), e, revision+1); err != nil {
				t.Fatal(err)
			}
			if _, err := s.PutEpisode(t.Context(), memory.Episode{
				ID: fmt.Sprint(revision), Source: "app", Scope: fact, Role: events.RoleUser, Content: texts[(int(revision)+n)%len(texts)], Timestamp: said0, ArrivedAt: said0,
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, sel := range []scope.Selector{
		scope.Exactly(scope.Scope{Project: "p", User: "u1"}), scope.Under(scope.Scope{Project: "p", User: "u2"}), {Project: "p"}, {Project: "none"},
	} {
		for _, kind := range []string{kindFact, kindEpisode} {
			c := corpus{kind: kind, sel: sel, terms: asked("blue sky moon stone nowhere")}
			candidates := func(bm25, ...place) []any {
				return s.searchArgs(of(kind).within(s.layout(), sel).rankedBy(c.terms, c.terms), 9, append([]any{"VERBATIM", "SCORER", "BM25STD"}, returning("t")...)...)
			}
			got, _, err := s.weigh(t.Context(), c, candidates)
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := s.weighMany(t.Context(), c, candidates(bm25{}))
			if err != nil {
				t.Fatal(err)
			}
			for _, term := range c.terms {
				want.frequency[term] += 0 // terms that are in no text have an entry as well
				got.frequency[term] += 0
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(bm25{})); diff != "" {
				t.Errorf("%s of %s (-index +scope):\n%s", kind, sel, diff)
			}
		}
	}
}

func TestTelling(t *testing.T) {
	t.Parallel()
	rank := bm25{BM25: lex.BM25{Texts: 10_000, Terms: 100_000}, frequency: map[string]float64{"a": 4_000, "b": 3_000, "c": 300, "d": 20, "e": 0}}
	for _, tc := range []struct {
		rank    bm25
		fetch   int
		telling []string
	}{
		{rank, 10, []string{"d"}},
		{rank, 100, []string{"d", "c"}},
		{rank, 1_000, []string{"d", "c", "b"}},
		{rank, 9_000, []string{"d", "c", "b", "a"}},
		{bm25{}, 10, []string{"a", "b", "c", "d", "e"}},
	} {
		held, telling := tc.rank.telling([]string{"a", "b", "c", "d", "e"}, tc.fetch)
		if diff := cmp.Diff(tc.telling, telling); diff != "" {
			t.Errorf("%d (-want +got):\n%s", tc.fetch, diff)
		}
		if want := len(tc.rank.frequency); want > 0 && len(held) != want-1 || want == 0 && len(held) != 5 {
			t.Errorf("%d: held %v", tc.fetch, held)
		}
	}
}
