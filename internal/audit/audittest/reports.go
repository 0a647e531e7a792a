package audittest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// RunReports holds a log to [audit.Reports]. open returns an empty one.
func RunReports(t *testing.T, open func(t *testing.T) audit.Log) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, audit.Log)
	}{
		{"a known story", reportsKnown},
		{"any story", reportsAny},
		{"nothing", reportsNothing},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			log := open(t)
			t.Cleanup(func() { _ = log.Close() })
			test.run(t, log)
		})
	}
}

// answers is what every report gives.
type answers struct {
	Deltas  []audit.DailyDeltas
	Noops   []audit.Noops
	Churn   []audit.Churn
	Yield   []audit.Yield
	Latency []audit.Latency
	Cost    []audit.Cost
	Safety  []audit.Safety
	Rated   []audit.Feedback
}

func ask(ctx context.Context, log audit.Reports, q audit.ReportQuery) (a answers, err error) {
	var errs [8]error
	a.Deltas, errs[0] = log.DailyDeltas(ctx, q)
	a.Noops, errs[1] = log.Noops(ctx, q)
	a.Churn, errs[2] = log.Churn(ctx, q)
	a.Yield, errs[3] = log.Yield(ctx, q)
	a.Latency, errs[4] = log.Latency(ctx, q)
	a.Cost, errs[5] = log.Cost(ctx, q)
	a.Safety, errs[6] = log.Safety(ctx, q)
	a.Rated, errs[7] = log.Feedback(ctx, q)
	return a, errors.Join(errs[:]...)
}

func reportsDiff(t *testing.T, log audit.Log, q audit.ReportQuery, want answers) {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = audit.MaxRecords
	}
	got, err := ask(t.Context(), log, q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s from %s to %s (-want +got):\n%s", q.Selector, q.From, q.To, diff)
	}
}

func reportsNothing(t *testing.T, log audit.Log) {
	project := scope.Selector{Project: "default"}
	reportsDiff(t, log, audit.ReportQuery{Selector: project}, answers{})
	logWrite(t, log, LogStory(logScope("alice"), 3, 1)...)
	reportsDiff(t, log, audit.ReportQuery{Selector: scope.Selector{Project: "other"}}, answers{})
	for _, limit := range []int{-1, 0, audit.MaxRecords + 1} {
		q := audit.ReportQuery{Selector: project, Limit: limit}
		if _, err := ask(t.Context(), log, q); !errors.Is(err, audit.ErrQuery) {
			t.Errorf("limit %d: %v, want ErrQuery", limit, err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t.Context(), log, audit.ReportQuery{Selector: project, Limit: 1}); !errors.Is(err, audit.ErrClosed) {
		t.Errorf("a closed log: %v, want ErrClosed", err)
	}
}

// change is a delta of a story: its operation, and the text of the fact after it.
type change struct {
	kind   events.DeltaKind
	fact   string
	text   string
	by     string        // "rules@v1" unless given
	lagged time.Duration // from said to applied
	why    events.Reason // new unless given
	rule   string        // the pattern; "pattern" unless given
}

// effectOf makes an effect of a scope. The facts' earlier versions are left out:
// no report looks at them.
func effectOf(s scope.Scope, revision, sequence uint64, rule, extractor string, at time.Time, tally events.Tally, changes ...change) events.Event[events.EffectCommitted] {
	e := events.EffectCommitted{
		Header: events.Header{Scope: s}, Revision: revision, Rule: rule, Extractor: extractor, CommittedAt: at, Tally: tally,
	}
	for i, c := range changes {
		f := events.Fact{
			ID: c.fact, Revision: revision*10 + uint64(i), Kind: events.FactSemantic, Text: c.text, Hash: events.HashID(c.text),
			EventTime: at.Add(-c.lagged), CreatedAt: at, UpdatedAt: at, ValidFrom: at, SourceEpisodeIDs: []string{"episode"}, RuleID: "pattern",
		}
		a := events.Applied{FactID: c.fact, Delta: deltaOf(c, f, fmt.Sprintf("%s-%d-%d", s, revision, i))}
		if c.kind == events.DeltaAdd || c.kind == events.DeltaUpdate {
			e.Facts = append(e.Facts, f)
			a.After = fmt.Sprintf("%s@%d", f.ID, f.Revision)
		}
		e.Applied = append(e.Applied, a)
	}
	return events.Event[events.EffectCommitted]{
		Meta: events.Meta{
			ID: events.HashID(s.String(), fmt.Sprint(revision)), Source: "test", Kind: events.KindEffectCommitted, Scope: s, Time: at, Sequence: sequence,
		},
		Data: e,
	}
}

func deltaOf(c change, f events.Fact, id string) events.Delta {
	p := events.Provenance{
		ID: id, SourceEpisodeIDs: f.SourceEpisodeIDs, PromotionTS: f.UpdatedAt, RuleID: f.RuleID, Confidence: 0.5,
		Reason: events.ReasonNew, DecidedBy: "rules@v1",
	}
	if c.by != "" {
		p.DecidedBy = c.by
	}
	if c.why != "" {
		p.Reason = c.why
	}
	if c.rule != "" {
		p.RuleID = c.rule
	}
	var d events.Delta
	var err error
	switch c.kind {
	case events.DeltaAdd:
		d, err = events.NewAdd(p, events.FactPayload{Fact: &f})
	case events.DeltaUpdate:
		d, err = events.NewUpdate(p, events.FactPayload{Fact: &f}, []string{f.ID})
	case events.DeltaDelete:
		d, err = events.NewDelete(p, []string{f.ID})
	default:
		d, err = events.NewNoop(p, c.fact)
	}
	if err != nil {
		panic(err)
	}
	return d
}

// reportsKnown is a story whose reports follow by inspection.
func reportsKnown(t *testing.T, log audit.Log) {
	s := logScope("alice")
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const add, update, remove, noop = events.DeltaAdd, events.DeltaUpdate, events.DeltaDelete, events.DeltaNoop
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	asked := effectOf(s, 4, 4, "sleep", "model@1", noon.Add(13*time.Hour), events.Tally{Episodes: 5},
		change{kind: remove, fact: "pet"}, change{kind: add, fact: "job", text: "smith", by: "llm:m-1", lagged: -second(5)})
	asked.Data.Spent = []events.Spent{
		{Model: "m-1", Calls: 3, InputTokens: 1500, OutputTokens: 40, Dollars: 0.25}, {Model: "m-2", Calls: 1, InputTokens: 7},
	}
	logWrite(t, log,
		effectOf(s, 1, 1, "turn", "pack@1", noon, events.Tally{Episodes: 4, Candidates: 3},
			change{kind: add, fact: "home", text: "Rome", lagged: second(1)}, change{kind: add, fact: "pet", text: "cat", lagged: second(2)},
			change{kind: noop, why: events.ReasonSafety, rule: "safety:do anything now"}),
		effectOf(s, 2, 2, "turn", "pack@1", noon.Add(time.Minute), events.Tally{Episodes: 2, Candidates: 1},
			change{kind: update, fact: "home", text: "Oslo", lagged: second(3)}),
		effectOf(s, 3, 3, "turn", "pack@2", noon.Add(12*time.Hour), events.Tally{Episodes: 1, Candidates: 1},
			change{kind: update, fact: "home", text: "Rome", lagged: second(100)}),
		asked,
		effectOf(s, 5, 5, "command", "", noon.Add(14*time.Hour), events.Tally{},
			change{kind: noop, fact: "home", why: events.ReasonRated, rule: "feedback:negative"},
			change{kind: noop, why: events.ReasonRated, rule: "feedback:positive"},
			change{kind: noop, fact: "home", why: events.ReasonDuplicate}),
	)
	day := noon.Truncate(24 * time.Hour)
	next := day.AddDate(0, 0, 1)
	reportsDiff(t, log, audit.ReportQuery{Selector: scope.Exactly(s)}, answers{
		Deltas: []audit.DailyDeltas{
			{Day: day, Rule: "turn", Kind: add, Deltas: 2}, {Day: day, Rule: "turn", Kind: noop, Deltas: 1}, {Day: day, Rule: "turn", Kind: update, Deltas: 1},
			{Day: next, Rule: "command", Kind: noop, Deltas: 3},
			{Day: next, Rule: "sleep", Kind: add, Deltas: 1}, {Day: next, Rule: "sleep", Kind: remove, Deltas: 1}, {Day: next, Rule: "turn", Kind: update, Deltas: 1},
		},
		Noops: []audit.Noops{{Rule: "command", Deltas: 3, Noops: 3}, {Rule: "sleep", Deltas: 2}, {Rule: "turn", Deltas: 5, Noops: 1}},
		Churn: []audit.Churn{{Scope: s, FactID: "home", Changes: 3, Flips: 1}, {Scope: s, FactID: "pet", Changes: 2}},
		Yield: []audit.Yield{
			{Rule: "sleep", Extractor: "model@1", Episodes: 5, Adds: 1}, {Rule: "turn", Extractor: "pack@1", Episodes: 6, Candidates: 4, Adds: 2},
			{Rule: "turn", Extractor: "pack@2", Episodes: 1, Candidates: 1},
		},
		Latency: []audit.Latency{{Rule: "turn", Facts: 4, P50: second(2), P95: second(100), P99: second(100)}},
		Safety:  []audit.Safety{{Reason: events.ReasonSafety, Rule: "turn", RuleID: "safety:do anything now", Drops: 1}},
		Rated:   []audit.Feedback{{Rating: events.RatingPositive, Ratings: 1}, {FactID: "home", Rating: events.RatingNegative, Ratings: 1}},
		Cost: []audit.Cost{
			{Rule: "command"}, {Rule: "sleep"}, {Rule: "sleep", Model: "m-1", Facts: 1, Calls: 3, InputTokens: 1500, OutputTokens: 40, Dollars: 0.25},
			{Rule: "sleep", Model: "m-2", Calls: 1, InputTokens: 7}, {Rule: "turn", Facts: 1},
		},
	})
	reportsDiff(t, log, audit.ReportQuery{Selector: scope.Selector{Project: "default"}, From: next, Limit: 1}, answers{
		Deltas:  []audit.DailyDeltas{{Day: next, Rule: "command", Kind: noop, Deltas: 3}},
		Noops:   []audit.Noops{{Rule: "command", Deltas: 3, Noops: 3}},
		Yield:   []audit.Yield{{Rule: "sleep", Extractor: "model@1", Episodes: 5, Adds: 1}},
		Latency: []audit.Latency{{Rule: "turn", Facts: 1, P50: second(100), P95: second(100), P99: second(100)}},
		Cost:    []audit.Cost{{Rule: "command"}},
		Rated:   []audit.Feedback{{Rating: events.RatingPositive, Ratings: 1}},
	})
}

// reportsAny holds the reports on a story made by chance, parts of which are
// written twice, against counting them in memory.
func reportsAny(t *testing.T, log audit.Log) {
	scopes := []scope.Scope{
		{Project: "p", User: "u"}, {Project: "p", User: "u", Agent: "a"}, {Project: "p", Agent: "a+b %/"}, {Project: "p", Agent: "a", Session: "É"},
		{Project: "p", User: "' OR 1=1 --"}, {Project: "q", User: "u"},
	}
	story := storyOfChance(rand.New(rand.NewPCG(1, 2)), scopes, 400)
	for cut := 0; cut < len(story); cut += 130 {
		logWrite(t, log, story[max(cut-40, 0):min(cut+130, len(story))]...)
	}
	u, agent, none := "u", "a", ""
	begin := story[0].Data.CommittedAt
	day := begin.Truncate(24 * time.Hour)
	for _, sel := range []scope.Selector{
		{Project: "p"}, {Project: "q"}, {Project: "p", User: &u}, {Project: "p", User: &u, Agent: &none}, {Project: "p", Agent: &agent},
		scope.Exactly(scopes[2]), scope.Exactly(scopes[3]), scope.Exactly(scopes[4]),
	} {
		for _, span := range [][2]time.Time{{}, {day.AddDate(0, 0, 1), day.AddDate(0, 0, 4)}, {begin.Add(30 * time.Hour), {}}, {{}, begin.Add(50*time.Hour + time.Microsecond)}} {
			q := audit.ReportQuery{Selector: sel, From: span[0], To: span[1]}
			reportsDiff(t, log, q, count(story, q))
		}
	}
}

// storyOfChance is n effects, each some time after the one before.
func storyOfChance(r *rand.Rand, scopes []scope.Scope, n int) []events.Event[events.EffectCommitted] {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	revisions := map[scope.Scope]uint64{}
	story := make([]events.Event[events.EffectCommitted], 0, n)
	for i := range n {
		at = at.Add(time.Duration(r.IntN(40*60)) * time.Second).Add(time.Duration(r.IntN(1e6)) * time.Microsecond)
		s := scopes[r.IntN(len(scopes))]
		revisions[s]++
		changes := make([]change, r.IntN(4))
		for j := range changes {
			changes[j] = change{
				kind: events.DeltaKind(pick("add", "update", "update", "delete", "noop")), fact: pick("f1", "f2", "f3"), text: pick("A", "B", "C"),
				by: pick("", "", "llm:small", "llm:large"), lagged: time.Duration(r.IntN(90e6)-5e6) * time.Microsecond,
			}
			if changes[j].kind == events.DeltaNoop {
				changes[j].fact, changes[j].rule = pick("", "f1"), pick("a", "safety:b", "feedback:none")
				changes[j].why = events.Reason(pick("duplicate", "safety", "sensitive", "rated"))
			}
			if r.IntN(20) == 0 {
				changes[j].lagged = 250 * 365 * 24 * time.Hour // before 1900
			}
		}
		tally := events.Tally{Episodes: r.IntN(5), Candidates: r.IntN(3)}
		e := effectOf(s, revisions[s], uint64(i+1), pick("turn", "sleep"), pick("", "pack@1", "llm:small@2"), at, tally, changes...)
		for _, model := range []string{"large", "small"} {
			if r.IntN(3) == 0 {
				e.Data.Spent = append(e.Data.Spent, events.Spent{
					Model: model, Calls: 1 + r.IntN(3), InputTokens: r.IntN(5000), OutputTokens: r.IntN(900), Dollars: float64(r.IntN(64)) / 64,
				})
			}
		}
		story = append(story, e)
	}
	return story
}
