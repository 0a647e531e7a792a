package filter_test

import (
	"testing"

	"palimpsest/internal/filter"
	"palimpsest/internal/filter/filtertest"
)

// TestLeavesHoldWhatMatches: metadata matches an equality exactly if a leaf has the path
// and the key of one of its values.
func TestLeavesHoldWhatMatches(t *testing.T) {
	t.Parallel()
	checked := 0
	for seed := range uint64(4_000) {
		draw := filtertest.New(seed)
		metadata := draw.Fact(int(seed)).Metadata
		each(draw.Filter(filter.Memory, []string{"metadata"}), func(c filter.Cond) {
			if c.Op != filter.Eq && c.Op != filter.In {
				return
			}
			checked++
			want := filter.Match(c, func(string) any { return metadata })
			got := false
			filter.Leaves(metadata, func(path string, v filter.Value) bool {
				for _, asked := range c.Values {
					got = got || path == c.Field.Path && v.Key() == asked.Key()
				}
				return !got
			})
			if got != want {
				t.Fatalf("seed %d: %s of %v: leaves say %v, the evaluator %v", seed, filter.JSON(c), metadata, got, want)
			}
		})
	}
	if checked < 1_000 {
		t.Errorf("%d conditions", checked)
	}
}

func each(e filter.Expr, yield func(filter.Cond)) {
	switch e := e.(type) {
	case filter.Not:
		each(e.Expr, yield)
	case filter.And:
		for _, x := range e {
			each(x, yield)
		}
	case filter.Or:
		for _, x := range e {
			each(x, yield)
		}
	case filter.Cond:
		yield(e)
	}
}
