package rulepack

import (
	"maps"
	"slices"
	"testing"

	"palimpsest/internal/eval"
)

// TestCorpus holds precision and recall on the labelled corpora, in all, per
// category, and on the utterances that state nothing. What differs is printed by
// "palimpsest eval extraction --data testdata --out FILE".
func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                     string
		precision, recall, class float64
		few                      int // categories with fewer facts have no floor
		negatives                int // utterances that state nothing and may yield a fact
	}{
		{name: "en", precision: 96, recall: 92, class: 75, few: 5, negatives: 2},
		{name: "en_everyday", precision: 95, recall: 92, class: 70, few: 5},
		{name: "ru", precision: 94, recall: 88, class: 60, few: 5, negatives: 1},
		{name: "de", precision: 94, recall: 90, class: 50, few: 3},
		{name: "fr", precision: 94, recall: 90, class: 50, few: 3},
		{name: "es", precision: 94, recall: 90, class: 50, few: 3},
		{name: "it", precision: 94, recall: 90, class: 50, few: 3},
		{name: "pt", precision: 94, recall: 90, class: 50, few: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set, err := eval.LoadUtterances("testdata/corpus_" + c.name + ".jsonl")
			if err != nil {
				t.Fatal(err)
			}
			r, err := eval.Extraction(t.Context(), set, shippedExtractor(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, category := range slices.Sorted(maps.Keys(r.Categories)) {
				if n := r.Categories[category]; n.Stated >= c.few && n.Recall() < c.class {
					t.Errorf("%s: recall %.1f, want %.0f", category, n.Recall(), c.class)
				}
			}
			all := r.All()
			t.Logf("precision %.1f, recall %.1f, %d of %d negatives, %d of %d dates", all.Precision(), all.Recall(), r.Fired, r.Silent, r.DatesRight, r.Dates)
			if r.DatesRight*10 < r.Dates*9 {
				t.Errorf("%d of %d dates are right, want 9 of 10", r.DatesRight, r.Dates)
			}
			if all.Precision() < c.precision || all.Recall() < c.recall || r.Fired > c.negatives {
				t.Errorf("precision %.1f, recall %.1f, %d negatives; want %.0f, %.0f, at most %d",
					all.Precision(), all.Recall(), r.Fired, c.precision, c.recall, c.negatives)
			}
		})
	}
}
