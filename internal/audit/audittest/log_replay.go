package audittest

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/filter"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func between(t *testing.T, log audit.Archive, sel scope.Selector, after, until uint64, matching filter.Expr) (got []events.Event[events.EffectCommitted]) {
	t.Helper()
	for e, err := range log.Between(t.Context(), sel, after, until, matching) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	return got
}

func logBetween(t *testing.T, log audit.Log) {
	// The effects of each scope stand between those of the others.
	scopes := JournalScopes()
	var all []events.Event[events.EffectCommitted]
	for i, s := range scopes {
		story := LogStory(s, 4, 100)
		for j := range story {
			story[j].Sequence += uint64(i)
		}
		all = append(all, story...)
	}
	logWrite(t, log, all...)
	logWrite(t, log, all[3], all[7])
	slices.SortFunc(all, func(a, b events.Event[events.EffectCommitted]) int { return int(a.Sequence) - int(b.Sequence) })
	empty := ""
	for _, sel := range []scope.Selector{
		{Project: "default"}, {Project: "other"}, {Project: "nobody"}, {Project: "default", User: &scopes[0].User},
		{Project: "default", User: &empty}, {Project: "default", Agent: &scopes[3].Agent}, {Project: "default", Session: &scopes[5].Session},
		scope.Exactly(scopes[8]), scope.Exactly(scopes[20]),
	} {
		for _, span := range [][2]uint64{{0, math.MaxInt64}, {0, 205}, {103, 301}, {400, 300}, {9999, math.MaxInt64}} {
			var want, got []uint64
			for _, e := range all {
				if sel.Match(e.Scope) && e.Sequence > span[0] && e.Sequence <= span[1] {
					want = append(want, e.Sequence)
				}
			}
			for _, e := range between(t, log, sel, span[0], span[1], nil) {
				got = append(got, e.Sequence)
			}
			if !slices.Equal(want, got) {
				t.Errorf("%s in (%d, %d]: %v, want %v", sel, span[0], span[1], got, want)
			}
		}
	}
	one := between(t, log, scope.Exactly(scopes[0]), 0, 100, nil)
	if len(one) != 1 || one[0].ID != all[0].ID || one[0].CorrelationID != all[0].CorrelationID || !one[0].Arrived.IsZero() {
		t.Fatalf("the first is %+v", one)
	}
	logDiff(t, logJSON(t, all[0].Data), logJSON(t, one[0].Data))
	for _, err := range log.Between(t.Context(), scope.Selector{Project: "default"}, 0, math.MaxInt64, nil) {
		if err != nil {
			t.Error(err)
		}
		break // a reader may leave
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range log.Between(ctx, scope.Selector{Project: "default"}, 0, 100, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled read: %v", err)
		}
	}
}
