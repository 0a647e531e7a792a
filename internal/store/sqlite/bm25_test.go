package sqlite

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// naive is a corpus by place, row and term.
type naive []map[int64][]string

// rank evaluates the formula of BM25 for every document.
func (n naive) rank(terms []string) []candidate {
	docs, length := 0.0, 0.0
	for _, place := range n {
		for _, doc := range place {
			docs++
			length += float64(len(doc))
		}
	}
	average := max(1, length/docs)
	held := func(doc []string, term string) (f float64) {
		for _, t := range doc {
			if t == term {
				f++
			}
		}
		return min(f, maxCount)
	}
	var ranked []candidate
	for _, place := range n {
		for row, doc := range place {
			score, found := 0.0, false
			for _, term := range terms {
				with := 0.0
				for _, place := range n {
					for _, doc := range place {
						with += min(1, held(doc, term))
					}
				}
				f := held(doc, term)
				found = found || f > 0
				idf := math.Log(1 + (docs-with+0.5)/(with+0.5))
				score += idf * f * 2.2 / (f + 1.2*(0.25+0.75*float64(min(len(doc), maxLength))/average))
			}
			if found {
				ranked = append(ranked, candidate{score, row})
			}
		}
	}
	slices.SortFunc(ranked, compareCandidates)
	return ranked
}

// lists are the posting lists of the corpus.
func (n naive) lists(terms []string) (all corpus, lists []postingList) {
	for _, place := range n {
		for _, doc := range place {
			all.docs++
			all.terms += int64(len(doc))
		}
		for _, term := range terms {
			list := listOf(nil)
			for row, doc := range place {
				count := 0
				for _, t := range doc {
					if t == term {
						count++
					}
				}
				if count > 0 {
					list = list.set(newPosting(docID(row, len(doc)), count))
				}
			}
			lists = append(lists, list)
		}
	}
	return all, lists
}

// TestBM25 holds the ranking, taken in any portions, to the formula.
func TestBM25(t *testing.T) {
	t.Parallel()
	words := []string{"a", "b", "c", "d", "e", "f", "g"}
	rapid.Check(t, func(t *rapid.T) {
		corpus := make(naive, rapid.IntRange(1, 3).Draw(t, "places"))
		row := int64(0)
		for i := range corpus {
			corpus[i] = map[int64][]string{}
			for range rapid.IntRange(0, 40).Draw(t, "docs") {
				// The first words are in almost every document, the last hardly ever.
				var doc []string
				for range rapid.IntRange(0, 12).Draw(t, "words") {
					doc = append(doc, words[rapid.IntRange(0, len(words)-1).Draw(t, "word")*rapid.IntRange(0, 1).Draw(t, "common")])
				}
				row += rapid.Int64Range(1, 3).Draw(t, "gap")
				corpus[i][row] = doc
			}
		}
		terms := rapid.SliceOfNDistinct(rapid.SampledFrom(append(words, "nowhere")), 1, 8, rapid.ID[string]).Draw(t, "terms")
		all, lists := corpus.lists(terms)
		if all.docs == 0 {
			t.Skip("nothing to rank")
		}
		want := corpus.rank(terms)
		var got []candidate
		engine := newBM25(all, lists, len(terms))
		for after := unbeaten; ; after = got[len(got)-1] {
			n := rapid.IntRange(1, 30).Draw(t, "take")
			list := engine.rank(n, after)
			got = append(got, list...)
			if len(list) < n {
				break
			}
		}
		compareRankings(t, got, want)
	})
}

// compareRankings allows for rounding: documents that differ by less may stand
// in either order.
func compareRankings(t *rapid.T, got, want []candidate) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d documents, want %d", len(got), len(want))
	}
	seen := map[int64]bool{}
	for i := range got {
		if math.Abs(got[i].score-want[i].score) > 1e-9*want[i].score {
			t.Fatalf("at %d: score %g, want %g", i, got[i].score, want[i].score)
		}
		if i > 0 && !got[i-1].better(got[i]) {
			t.Fatalf("%v stands before %v", got[i-1], got[i])
		}
		seen[got[i].row] = true
	}
	for _, c := range want {
		if !seen[c.row] {
			t.Fatalf("row %d is missing", c.row)
		}
	}
}
