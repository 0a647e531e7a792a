package memory

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/events"
)

func TestPlanAdd(t *testing.T) {
	t.Parallel()
	w := newWorld()
	b := batch(addFact("d1", fact("f1", "Anna works at Fenwick", noon, "e1")))
	b.Episodes = []events.EpisodeRef{
		{ID: "e2", Ordinal: 2, CorrelationID: "c2"}, {ID: "e1", Ordinal: 1, CorrelationID: "c1"}, {ID: "e3", Ordinal: 3, CorrelationID: "c1"},
	}
	b.SessionEnds = []events.SessionEnd{{Session: "s", LastOrdinal: 3}}
	e := one(t, w.commit(t, w.input(b)))
	if e.Watermark == nil || *e.Watermark != 3 || len(e.SessionEnds) != 1 {
		t.Errorf("watermark %v, ends %v", e.Watermark, e.SessionEnds)
	}
	if diff := cmp.Diff(events.Tally{Episodes: 3, Candidates: 1, Decided: 1}, e.Tally); diff != "" {
		t.Error(diff)
	}
	want := []events.Outcome{
		{CorrelationID: "c1", Rule: RuleTurn, EpisodeIDs: []string{"e1", "e3"}, Revision: 1, Results: []events.Result{
			{Event: events.ChangeAdd, DeltaID: "d1", FactID: "f1", Revision: 1, Memory: "Anna works at Fenwick", Reason: events.ReasonNew},
		}},
		{CorrelationID: "c2", Rule: RuleTurn, EpisodeIDs: []string{"e2"}, Revision: 1, Results: []events.Result{}},
	}
	if diff := cmp.Diff(want, e.Outcomes); diff != "" {
		t.Error(diff)
	}
	if a := e.Applied[0]; a.Before != "" || a.After != "f1@1" || a.FactID != "f1" {
		t.Errorf("applied %+v", a)
	}
	if len(e.Entities) != 2 || len(w.facts["f1"].EntityIDs) != 2 {
		t.Errorf("entities %v, linked %v", e.Entities, w.facts["f1"].EntityIDs)
	}
	if len(e.Edges) != 1 || e.Edges[0].Type != events.EdgeRelation || e.Edges[0].ValidUntil != nil {
		t.Errorf("edges %+v", e.Edges)
	}
}

func TestPlanChainsVersions(t *testing.T) {
	t.Parallel()
	w := newWorld()
	later, last := noon.Add(time.Hour), noon.Add(2*time.Hour)
	e := one(t, w.commit(t, w.input(batch(
		addFact("d1", fact("f1", "one", noon, "e1")),
		updateFact("d2", events.ReasonRefinement, fact("f1", "two", later, "e2"), "f1"),
		updateFact("d3", events.ReasonContradiction, fact("f1", "three", last, "e3"), "f1"),
	))))
	got := w.facts["f1"]
	if got.Revision != 3 || got.Text != "three" || !got.CreatedAt.Equal(noon) {
		t.Errorf("fact %+v", got)
	}
	if diff := cmp.Diff([]string{"e1", "e2", "e3"}, got.SourceEpisodeIDs); diff != "" {
		t.Error(diff)
	}
	if len(e.Facts) != 1 || len(e.Versions) != 2 {
		t.Fatalf("%d facts, %d versions", len(e.Facts), len(e.Versions))
	}
	for i, until := range []time.Time{later, last} {
		v := e.Versions[i]
		if v.ValidUntil == nil || !v.ValidUntil.Equal(until) || v.SupersededBy != fmt.Sprintf("f1@%d", i+2) {
			t.Errorf("version %d: until %v, superseded by %q", v.Revision, v.ValidUntil, v.SupersededBy)
		}
	}
}

func TestPlanUpdateOfSeveral(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.commit(t, w.input(batch(addFact("d1", fact("f1", "one", noon, "e1")), addFact("d2", fact("f2", "two", noon, "e2")))))
	later := noon.Add(time.Hour)
	e := one(t, w.commit(t, w.input(batch(updateFact("d3", events.ReasonRefinement, fact("", "both", later, "e3"), "f1", "f2")))))
	survivor, closed := w.facts["f1"], w.facts["f2"]
	if survivor.Revision != 2 || survivor.Text != "both" || survivor.ValidUntil != nil {
		t.Errorf("survivor %+v", survivor)
	}
	if diff := cmp.Diff([]string{"f1@1", "f2@1"}, survivor.Supersedes); diff != "" {
		t.Error(diff)
	}
	if closed.Revision != 2 || closed.SupersededBy != "f1@2" || !closed.ValidUntil.Equal(later) || closed.EntityIDs != nil {
		t.Errorf("closed %+v", closed)
	}
	if len(e.Applied) != 2 || e.Tally.Candidates != 1 {
		t.Errorf("applied %d, tally %+v", len(e.Applied), e.Tally)
	}
}

func TestPlanDeleteAndRestore(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.commit(t, w.input(batch(addFact("d1", fact("f1", "Anna works at Fenwick", noon, "e1")))))
	linked := w.facts["f1"].EntityIDs
	b := batch(deleteFacts("d2", events.ReasonNegation, "f1"))
	b.Candidates[0].EventTime = noon.Add(-time.Hour) // before the fact began
	w.commit(t, w.input(b))
	closed := w.facts["f1"]
	if closed.Revision != 2 || closed.ValidUntil == nil || !closed.ValidUntil.Equal(noon) || closed.EntityIDs != nil {
		t.Errorf("closed %+v", closed)
	}
	if open := openRelations(w); open != 0 {
		t.Errorf("%d relation edges are open on a closed fact", open)
	}
	restored := fact("f1", "Anna works at Fenwick", noon, "e1")
	b = batch(updateFact("d3", events.ReasonRestored, restored, "f1"))
	b.Mentions = nil
	w.commit(t, w.input(b))
	if got := w.facts["f1"]; got.Revision != 3 || got.ValidUntil != nil || !cmp.Equal(got.EntityIDs, linked) {
		t.Errorf("restored %+v, want entities %v", got, linked)
	}
	if open := openRelations(w); open != 1 {
		t.Errorf("%d relation edges are open on a restored fact", open)
	}
}

func openRelations(w *world) int {
	n := 0
	for _, e := range w.edges {
		if e.Type == events.EdgeRelation && e.ValidUntil == nil {
			n++
		}
	}
	return n
}

func TestPlanNoop(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.commit(t, w.input(batch(addFact("d1", fact("f1", "one", noon, "e1")))))
	e := one(t, w.commit(t, w.input(batch(noopAbout("d2", events.ReasonDuplicate, "f1", "e2")))))
	got := w.facts["f1"]
	if got.Revision != 1 || !cmp.Equal(got.SourceEpisodeIDs, []string{"e1", "e2"}) || !cmp.Equal(got.SessionIDs, []string{"s"}) {
		t.Errorf("fact %+v", got)
	}
	if len(e.Versions) != 0 || e.Applied[0].After != "" {
		t.Errorf("versions %d, applied %+v", len(e.Versions), e.Applied[0])
	}
	e = one(t, w.commit(t, w.input(batch(addFact("d3", fact("f1", "one", noon, "e3"))))))
	if e.Applied[0].Delta.Kind() != events.DeltaNoop || w.facts["f1"].Revision != 1 {
		t.Errorf("an add of a known id gave %+v", e.Applied[0])
	}
	e = one(t, w.commit(t, w.input(batch(deleteFacts("d4", events.ReasonNegation, "unknown")))))
	if e.Applied[0].Delta.Provenance().Reason != events.ReasonChangedSince || len(e.Facts) != 0 {
		t.Errorf("a delete of an unknown id gave %+v", e.Applied[0])
	}
}

func TestPlanArchive(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.commit(t, w.input(batch(addFact("d1", fact("f1", "one", noon, "e1")))))
	w.commit(t, w.input(batch(deleteFacts("d2", events.ReasonArchived, "f1"))))
	if got := w.facts["f1"]; got.Revision != 2 || got.ArchivedAt == nil || got.ValidUntil != nil {
		t.Errorf("archived %+v", got)
	}
}

func TestPlanCommand(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.commit(t, w.input(batch(addFact("d1", fact("f1", "one", noon, "e1")))))
	command := func(rev uint64) events.DeltasDecided {
		b := batch(deleteFacts("d2", events.ReasonRequested, "f1"))
		b.Command = &events.CommandRef{RequestID: "r", Op: events.OpDelete, IfMatch: map[string]uint64{"f1": rev}}
		return b
	}
	e := one(t, w.commit(t, w.input(command(7))))
	if e.Rule != RuleCommand || e.Watermark != nil || e.Range != nil || e.Tally.Episodes != 0 {
		t.Errorf("effect of a command: %+v", e)
	}
	o := e.Outcomes[0]
	if o.CorrelationID != "request" || !strings.Contains(o.Conflict, "revision 1, not 7") || w.facts["f1"].ValidUntil != nil {
		t.Errorf("conflicting command: %+v", o)
	}
	if o.Results[0].Reason != events.ReasonChangedSince || o.Results[0].Revision != 1 {
		t.Errorf("result %+v", o.Results[0])
	}
	e = one(t, w.commit(t, w.input(command(1))))
	if e.Outcomes[0].Conflict != "" || w.facts["f1"].ValidUntil == nil {
		t.Errorf("command: %+v", e.Outcomes[0])
	}
}

func TestPlanHoldsAndReleases(t *testing.T) {
	t.Parallel()
	w := newWorld()
	hold := must(events.NewAdd(provenance("d1", events.ReasonHeld, "e1"), events.FactPayload{Hold: &events.Hold{ID: "cand-d1", Why: "hedged"}}))
	e := one(t, w.commit(t, w.input(batch(hold))))
	if len(w.holds) != 1 || e.Tally.Held != 1 {
		t.Fatalf("holds %v, tally %+v", w.holds, e.Tally)
	}
	w.commit(t, w.input(batch(noopAbout("d1", events.ReasonHeldExpired, "", "e1"))))
	if len(w.holds) != 0 {
		t.Errorf("holds %v", w.holds)
	}
}

func TestPlanSettlesWhatWasHeld(t *testing.T) {
	t.Parallel()
	hold := func(id string) events.Delta {
		return must(events.NewAdd(provenance(id, events.ReasonChurn, "e1"), events.FactPayload{Hold: &events.Hold{ID: "cand-" + id, FactID: "f1", Why: "churn"}}))
	}
	w := newWorld()
	e := one(t, w.commit(t, w.input(batch(noopAbout("d0", events.ReasonChurn, "f1", "e1"), hold("d1")))))
	if diff := cmp.Diff(events.Tally{Episodes: 3, Candidates: 2, Held: 1, Dropped: 1}, e.Tally); diff != "" || w.holds["cand-d1"].Rule != RuleTurn {
		t.Errorf("held for churn: %s, %+v", diff, w.holds)
	}
	if e.Applied[1].FactID != "f1" {
		t.Errorf("the fact's history does not show it: %+v", e.Applied[1])
	}

	// Another rule's batch takes its place.
	b := batch(hold("d2"))
	b.Rule = RuleSleep
	b.Deltas = append(b.Deltas, noopAbout("d1", events.ReasonChurn, "f1", "e1"))
	e = one(t, w.commit(t, w.input(b)))
	want := events.Tally{Episodes: 3, Candidates: 1, Held: 1, Settled: []events.Settlement{{Rule: RuleTurn, Dropped: 1}}}
	if diff := cmp.Diff(want, e.Tally); diff != "" || len(w.holds) != 1 || len(e.Released) != 1 {
		t.Errorf("overtaken: %s, %v", diff, w.holds)
	}

	// What a letter brings back was counted with the range that it came of.
	late := batch(hold("d3"))
	late.Cause, late.Range = events.CauseLate, events.Range{}
	e = one(t, w.commit(t, w.input(late)))
	if diff := cmp.Diff(events.Tally{}, e.Tally); diff != "" || w.holds["cand-d3"].Rule != "" {
		t.Errorf("held late: %s, %+v", diff, w.holds)
	}
	late.Deltas = events.Deltas{noopAbout("d3", events.ReasonChurn, "f1", "e1")}
	e = one(t, w.commit(t, w.input(late)))
	if diff := cmp.Diff(events.Tally{}, e.Tally); diff != "" || len(w.holds) != 1 {
		t.Errorf("late and overtaken: %s, %+v", diff, w.holds)
	}

	// The candidate left the buffer before, and was counted by the batch that held it.
	b = batch()
	b.Deltas = events.Deltas{noopAbout("d1", events.ReasonChurn, "f1", "e1")}
	e = one(t, w.commit(t, w.input(b)))
	if diff := cmp.Diff(events.Tally{Episodes: 3}, e.Tally); diff != "" {
		t.Errorf("settled twice: %s", diff)
	}

	release := func(d events.Delta) events.DeltasDecided {
		b := batch(d)
		b.Command = &events.CommandRef{RequestID: "r", Op: events.OpReleaseDue}
		return b
	}
	e = one(t, w.commit(t, w.input(release(hold("d2")))))
	if diff := cmp.Diff(events.Tally{}, e.Tally); diff != "" || w.holds["cand-d2"].Rule != RuleSleep {
		t.Errorf("held again: %s, %v", diff, w.holds)
	}
	in := w.input(release(addFact("d2", fact("f9", "Anna rows.", noon, "e1"))))
	in.Conflict = "somebody else was faster"
	e = one(t, w.commit(t, in))
	if diff := cmp.Diff(events.Tally{}, e.Tally); diff != "" || len(w.holds) != 1 {
		t.Errorf("conflict: %s, %v", diff, w.holds)
	}
	e = one(t, w.commit(t, w.input(release(addFact("d2", fact("f9", "Anna rows.", noon, "e1"))))))
	want = events.Tally{Settled: []events.Settlement{{Rule: RuleSleep, Decided: 1}}}
	if diff := cmp.Diff(want, e.Tally); diff != "" || len(w.holds) != 0 {
		t.Errorf("released: %s, %v", diff, w.holds)
	}
}

func TestPlanWatermark(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*events.DeltasDecided)
		moves  bool
		tally  events.Tally
	}{
		"every":   {func(*events.DeltasDecided) {}, true, events.Tally{Episodes: 3}},
		"skipped": {func(b *events.DeltasDecided) { b.Skipped = "poison" }, true, events.Tally{Episodes: 3, Skipped: 3}},
		"late":    {func(b *events.DeltasDecided) { b.Cause = events.CauseLate }, false, events.Tally{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, b := newWorld(), batch()
			test.change(&b)
			e := one(t, w.commit(t, w.input(b)))
			if (e.Watermark != nil) != test.moves {
				t.Errorf("watermark %v", e.Watermark)
			}
			if diff := cmp.Diff(test.tally, e.Tally); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanSplits(t *testing.T) {
	t.Parallel()
	w := newWorld()
	var deltas []events.Delta
	for i := range 40 {
		deltas = append(deltas, addFact(fmt.Sprintf("d%d", i), fact(fmt.Sprintf("f%d", i), strings.Repeat("long ", 100), noon, "e1")))
	}
	b := batch(deltas...)
	b.Episodes = []events.EpisodeRef{{ID: "e1", Ordinal: 1, CorrelationID: "c1"}}
	in := w.input(b)
	in.MaxBytes = 40_000
	effects := w.commit(t, in)
	if len(effects) < 3 {
		t.Fatalf("%d effects", len(effects))
	}
	for i, e := range effects {
		last := i == len(effects)-1
		if (e.Watermark != nil) != last || (len(e.Outcomes) > 0) != last {
			t.Errorf("effect %d of %d: watermark %v, %d outcomes", i, len(effects), e.Watermark, len(e.Outcomes))
		}
		if size, _ := sizeOf(e); size > in.MaxBytes {
			t.Errorf("effect %d has %d bytes", i, size)
		}
	}
	if n := len(effects[len(effects)-1].Outcomes[0].Results); n != 40 || len(w.facts) != 40 {
		t.Errorf("%d results, %d facts", n, len(w.facts))
	}
	in.MaxBytes = 100
	if _, err := Plan(in); err == nil {
		t.Error("a delta over the limit was planned")
	}
}

// What a command settles may be too long to tell in one effect; an effect that
// no journal takes would leave the command under way for ever.
func TestShedResults(t *testing.T) {
	t.Parallel()
	told := events.Outcome{CorrelationID: "r1", Rule: RuleCommand, Revision: 9}
	for i := range 1000 {
		told.Results = append(told.Results, events.Result{Event: events.ChangeDelete, FactID: fmt.Sprint(i), OldMemory: "something"})
	}
	whole := events.EffectCommitted{Header: events.Header{Scope: alice}, Revision: 9, Rule: RuleCommand, Outcomes: []events.Outcome{told}}
	for limit, fits := range map[int]bool{1 << 20: true, 20_000: true, 1000: true, 100: false} {
		p := newPlanner(PlanInput{MaxBytes: limit})
		e, err := p.shed(whole)
		if !fits {
			var refused *events.FieldError
			if !errors.As(err, &refused) {
				t.Errorf("%d bytes: %v, want a refusal", limit, err)
			}
			continue
		}
		size, _ := sizeOf(e)
		if o := e.Outcomes[0]; err != nil || size > limit || len(o.Results)+o.Omitted != 1000 || (o.Omitted == 0) != (limit == 1<<20) {
			t.Errorf("%d bytes: %d, %d results and %d omitted, %v", limit, size, len(o.Results), o.Omitted, err)
		}
	}
	if len(whole.Outcomes[0].Results) != 1000 || whole.Outcomes[0].Omitted != 0 {
		t.Error("the effect that was given has changed")
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	known := []events.Entity{
		{ID: "1", CanonicalName: "Fenwick Labs", Type: events.EntityOrganization, Aliases: []string{"Georgia"}},
		{ID: "2", CanonicalName: "Georgia", Type: events.EntityPlace},
		{ID: "3", CanonicalName: "GEORGIA", Type: events.EntityPerson},
	}
	for _, test := range []struct {
		name string
		kind events.EntityType
		want string
	}{
		{"georgia", events.EntityPerson, "3"},
		{"ＧＥＯＲＧＩＡ", events.EntityPlace, "2"}, // compatibility forms fold
		{"Georgia", events.EntityTool, "2"},
		{"fenwick  labs", events.EntityTool, "1"},
		{"", events.EntityTool, ""},
		{"Tarn", events.EntityTool, ""},
	} {
		if got, _ := Resolve(known, test.name, test.kind); got.ID != test.want {
			t.Errorf("Resolve(%q, %s) = %q, want %q", test.name, test.kind, got.ID, test.want)
		}
	}
}
