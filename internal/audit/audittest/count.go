package audittest

import (
	"cmp"
	"math"
	"slices"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// count makes the reports in memory, by their definitions.
func count(story []events.Event[events.EffectCommitted], q audit.ReportQuery) answers {
	var effects []events.EffectCommitted
	var records []audit.Record
	for _, e := range story {
		at := e.Data.CommittedAt
		if !q.Selector.Match(e.Scope) || at.Before(q.From) || !q.To.IsZero() && !at.Before(q.To) {
			continue
		}
		effects, records = append(effects, e.Data), append(records, audit.Records(e)...)
	}
	return answers{
		Deltas: countDeltas(records), Noops: countNoops(records), Churn: countChurn(records),
		Yield: countYield(effects), Latency: countLatency(records), Cost: countCost(effects, records),
		Safety: countSafety(records), Rated: countRated(records),
	}
}

// tallied is a map as rows in the order of compare; nil where it is empty.
func tallied[K comparable, V any](of map[K]*V, compare func(a, b V) int) (rows []V) {
	for _, v := range of {
		rows = append(rows, *v)
	}
	slices.SortFunc(rows, compare)
	return rows
}

// at is the value of a key, made where there is none.
func at[K comparable, V any](of map[K]*V, key K, first V) *V {
	if of[key] == nil {
		of[key] = &first
	}
	return of[key]
}

func countDeltas(records []audit.Record) []audit.DailyDeltas {
	all := map[audit.DailyDeltas]*audit.DailyDeltas{}
	for _, r := range records {
		row := audit.DailyDeltas{Day: r.AppliedAt.Truncate(24 * time.Hour), Rule: r.Rule, Kind: r.Kind}
		at(all, row, row).Deltas++
	}
	return tallied(all, func(a, b audit.DailyDeltas) int {
		return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Kind, b.Kind))
	})
}

func countNoops(records []audit.Record) []audit.Noops {
	all := map[string]*audit.Noops{}
	for _, r := range records {
		row := at(all, r.Rule, audit.Noops{Rule: r.Rule})
		row.Deltas++
		if r.Kind == events.DeltaNoop {
			row.Noops++
		}
	}
	return tallied(all, func(a, b audit.Noops) int { return cmp.Compare(a.Rule, b.Rule) })
}

type factKey struct {
	scope scope.Scope
	id    string
}

func changesOf(records []audit.Record) map[factKey][]audit.Record {
	all := map[factKey][]audit.Record{}
	for _, r := range records {
		if r.FactID != "" && r.Kind != events.DeltaNoop {
			all[factKey{r.Scope, r.FactID}] = append(all[factKey{r.Scope, r.FactID}], r)
		}
	}
	return all
}

func countChurn(records []audit.Record) (rows []audit.Churn) {
	for key, changes := range changesOf(records) {
		row := audit.Churn{Scope: key.scope, FactID: key.id, Changes: uint64(len(changes))}
		var texts []string
		for _, r := range changes {
			text := r.Value()
			if text == "" {
				continue
			}
			if slices.Contains(texts, text) && texts[len(texts)-1] != text {
				row.Flips++
			}
			texts = append(texts, text)
		}
		if row.Changes > 1 {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b audit.Churn) int {
		return cmp.Or(cmp.Compare(b.Flips, a.Flips), cmp.Compare(b.Changes, a.Changes), cmp.Compare(a.Scope.Key(), b.Scope.Key()), cmp.Compare(a.FactID, b.FactID))
	})
	return rows
}

func countYield(effects []events.EffectCommitted) []audit.Yield {
	all := map[[2]string]*audit.Yield{}
	for _, e := range effects {
		row := at(all, [2]string{e.Rule, e.Extractor}, audit.Yield{Rule: e.Rule, Extractor: e.Extractor})
		row.Episodes += uint64(e.Tally.Episodes)
		row.Candidates += uint64(e.Tally.Candidates)
		row.Adds += audit.Adds(e)
	}
	return slices.DeleteFunc(tallied(all, func(a, b audit.Yield) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Extractor, b.Extractor))
	}), func(y audit.Yield) bool { return y.Episodes+y.Candidates == 0 })
}

func countLatency(records []audit.Record) (rows []audit.Latency) {
	all := map[string][]int64{}
	for _, r := range records {
		if ms, ok := r.Known(); ok {
			all[r.Rule] = append(all[r.Rule], ms)
		}
	}
	for rule, ms := range all {
		slices.Sort(ms)
		rank := func(percent float64) time.Duration {
			return time.Duration(ms[int(math.Ceil(percent*float64(len(ms))/100))-1]) * time.Millisecond
		}
		rows = append(rows, audit.Latency{Rule: rule, Facts: uint64(len(ms)), P50: rank(50), P95: rank(95), P99: rank(99)})
	}
	slices.SortFunc(rows, func(a, b audit.Latency) int { return cmp.Compare(a.Rule, b.Rule) })
	return rows
}

func countCost(effects []events.EffectCommitted, records []audit.Record) []audit.Cost {
	all := map[[2]string]*audit.Cost{}
	row := func(r audit.Record) *audit.Cost {
		return at(all, [2]string{r.Rule, r.Model()}, audit.Cost{Rule: r.Rule, Model: r.Model()})
	}
	for _, r := range records {
		row(r)
	}
	for _, e := range effects {
		for _, s := range e.Spent {
			c := at(all, [2]string{e.Rule, s.Model}, audit.Cost{Rule: e.Rule, Model: s.Model})
			c.Calls, c.InputTokens, c.OutputTokens = c.Calls+uint64(s.Calls), c.InputTokens+uint64(s.InputTokens), c.OutputTokens+uint64(s.OutputTokens)
			c.Dollars += s.Dollars
		}
	}
	for _, changes := range changesOf(records) {
		if newest := changes[len(changes)-1]; newest.Kind != events.DeltaDelete {
			row(newest).Facts++
		}
	}
	return tallied(all, func(a, b audit.Cost) int { return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Model, b.Model)) })
}

func countSafety(records []audit.Record) []audit.Safety {
	all := map[audit.Safety]*audit.Safety{}
	for _, r := range records {
		if r.Reason == events.ReasonSafety || r.Reason == events.ReasonSensitive {
			row := audit.Safety{Reason: r.Reason, Rule: r.Rule, RuleID: r.RuleID}
			at(all, row, row).Drops++
		}
	}
	return tallied(all, func(a, b audit.Safety) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.RuleID, b.RuleID))
	})
}

func countRated(records []audit.Record) []audit.Feedback {
	all := map[audit.Feedback]*audit.Feedback{}
	for _, r := range records {
		if r.Reason == events.ReasonRated {
			row := audit.Feedback{FactID: r.FactID, Rating: audit.RatingOf(r.RuleID)}
			at(all, row, row).Ratings++
		}
	}
	return tallied(all, func(a, b audit.Feedback) int {
		return cmp.Or(cmp.Compare(a.FactID, b.FactID), cmp.Compare(a.Rating, b.Rating))
	})
}
