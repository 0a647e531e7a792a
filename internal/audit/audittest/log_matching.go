package audittest

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/filter"
	"palimpsest/internal/filter/filtertest"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// filtersVariable names how many random filters a log is held to.
const filtersVariable = "TEST_FILTERS"

const fewFilters = 100

// filterFields are the names that random filters draw from, aliases and all.
var filterFields = []string{
	"user", "agent", "session", "revision", "scope_revision", "index", "sequence", "delta_id", "kind", "reason", "rule", "rule_id", "decided_by", "confidence",
	"fact_id", "request_id", "candidate_id", "correlation_id", "source_episode_ids", "sources", "event_time", "decided_at", "applied_at",
}

// logMatching: a log finds the effects that the evaluator keeps.
func logMatching(t *testing.T, log audit.Log) {
	want := fewFilters
	if text := os.Getenv(filtersVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", filtersVariable, err)
		}
		want = n
	}
	draw := filtertest.New(7)
	var all []events.Event[events.EffectCommitted]
	for i, s := range []scope.Scope{{Project: "p", User: "ann"}, {Project: "p", User: "it's", Agent: "bot"}, {Project: "p", Agent: "a", Session: "%"}} {
		for j, e := range LogStory(s, 6, 3) {
			e.Sequence -= uint64(i)
			all = append(all, disguised(draw, e, j == 5))
		}
	}
	logWrite(t, log, all...)
	logWrite(t, log, all[3], all[7])
	slices.SortFunc(all, func(a, b events.Event[events.EffectCommitted]) int { return int(a.Sequence) - int(b.Sequence) })
	narrowed := 0
	for seed := range uint64(want) {
		draw := filtertest.New(seed)
		x := draw.Filter(filter.Audit, filterFields)
		after, until := uint64(draw.IntN(5)), uint64(math.MaxInt64)
		if draw.IntN(2) == 0 {
			until = 14
		}
		var want, got []uint64
		for _, e := range all {
			if e.Sequence > after && e.Sequence <= until && slices.ContainsFunc(audit.Records(e), func(r audit.Record) bool { return filter.Match(x, audit.Row(&r)) }) {
				want = append(want, e.Sequence)
			}
		}
		for _, e := range between(t, log, scope.Selector{Project: "p"}, after, until, x) {
			got = append(got, e.Sequence)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: %v in (%d, %d] match %s, want %v", seed, got, after, until, filter.JSON(x), want)
		}
		if len(want) > 0 && len(want) < len(all)-5 {
			narrowed++
		}
	}
	if narrowed < want/10 {
		t.Errorf("%d of %d filters match some effects and not others", narrowed, want)
	}
}

// disguised has random values where an effect of [LogStory] has plain ones, and no
// delta where it is to be empty.
func disguised(draw filtertest.Source, e events.Event[events.EffectCommitted], empty bool) events.Event[events.EffectCommitted] {
	e.CorrelationID, e.Data.Rule, e.Data.CommittedAt = draw.Text(), draw.Text(), draw.Instant()
	if draw.IntN(2) == 0 {
		e.Data.Outcomes = nil
	}
	if empty {
		e.Data.Applied = nil
		return e
	}
	f := e.Data.Facts[0]
	p := storyProvenance(f, f.Revision, "noop", events.ReasonTransient)
	p.ID, p.CandidateID, p.RequestID, p.RuleID, p.DecidedBy = draw.Text(), draw.Text(), draw.Text(), draw.Text(), draw.Text()
	p.SourceEpisodeIDs, p.PromotionTS, p.Confidence = []string{draw.Text(), draw.Text()}, draw.Instant(), float64(draw.IntN(3))/2
	d, err := events.NewNoop(p, "")
	if err != nil {
		panic(fmt.Sprintf("%+v: %v", p, err))
	}
	e.Data.Applied[1] = events.Applied{Delta: d, FactID: draw.Text()}
	return e
}
