package consolidator

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/events"
)

// prune is a batch of maintenance that closes facts, decided on a revision.
func prune(t *testing.T, basis uint64, ids ...string) events.Event[events.DeltasDecided] {
	t.Helper()
	in := turn(t, 1, basis, "none")
	in.Data = events.DeltasDecided{
		Batch: events.Batch{
			Header: events.Header{Scope: alice}, Rule: "maintenance", Cause: events.CauseMaintenance,
			Upkeep: &events.Upkeep{Step: events.StepPrune, FactIDs: ids, At: noon},
		},
		Basis: basis, BasisSequence: 3 * basis, Footprint: &events.Footprint{Facts: map[string]uint64{}},
	}
	for _, id := range ids {
		d, err := events.NewDelete(events.Provenance{
			ID: "p-" + id, CandidateID: "pc-" + id, SourceEpisodeIDs: []string{"e-" + id}, PromotionTS: noon, RuleID: "maintenance.prune",
			Confidence: 0.04, Reason: events.ReasonBelowThreshold, DecidedBy: "upkeep@1",
		}, []string{id})
		if err != nil {
			t.Fatal(err)
		}
		in.Data.Deltas = append(in.Data.Deltas, d)
		in.Data.Candidates = append(in.Data.Candidates, events.Candidate{ID: "pc-" + id, EventTime: noon, Replaces: []string{id}})
		in.Data.Footprint.Facts[id] = 1
	}
	in.ID = "m-prune"
	return in
}

// decays gives facts a rate at which they are due at noon.
func (b *bench) decays(ids ...string) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.store.accessed = map[string]time.Time{}
	for _, id := range ids {
		f := b.store.facts[id]
		f.Confidence, f.DecayRate, f.ValidFrom = 0.5, 0.1, noon.AddDate(-1, 0, 0)
		b.store.facts[id], b.store.accessed[id] = f, noon.AddDate(-1, 0, 0)
	}
}

func TestPruneIsAnEffectThatMovesNoWatermark(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustCommit(t, turn(t, 1, 0, "old"))
	b.mustCommit(t, turn(t, 2, 1, "read"))
	b.decays("old", "read")
	in := prune(t, 2, "old", "read")
	b.store.accessed["read"] = noon.Add(-time.Hour) // after the decision
	b.mustCommit(t, in)
	e := b.journal.effects[2].Data
	if e.Watermark != nil || e.Rule != "maintenance" || e.Cause != events.CauseMaintenance || !cmp.Equal(e.Tally, events.Tally{}) {
		t.Errorf("effect %+v", e)
	}
	reasons := map[string]events.Reason{}
	for _, a := range e.Applied {
		reasons[a.FactID] = a.Delta.Provenance().Reason
	}
	if want := map[string]events.Reason{"old": events.ReasonBelowThreshold, "read": events.ReasonChangedSince}; !cmp.Equal(want, reasons) {
		t.Errorf("reasons %v, want %v", reasons, want)
	}
	if f := b.store.facts["old"]; f.ValidUntil == nil || !f.ValidUntil.Equal(noon) {
		t.Errorf("the fact is not closed: %+v", f)
	}
	if f := b.store.facts["read"]; f.ValidUntil != nil || f.Revision != 1 {
		t.Errorf("the fact that was read is closed: %+v", f)
	}
	if b.store.state.Watermarks["maintenance"] != 0 {
		t.Errorf("watermarks %v", b.store.state.Watermarks)
	}
	// The same batch again is stale, and is decided on the facts of now.
	in.Delivery = 2
	out := b.mustCommit(t, in)
	if len(b.journal.effects) != 3 || !slices.ContainsFunc(out, func(p events.Payload) bool { return p.Kind() == events.KindCandidatesExtracted }) {
		t.Errorf("%d effects, then %v", len(b.journal.effects), out)
	}
}

func TestPruneOfNothingCommitsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustCommit(t, turn(t, 1, 0, "old"))
	in := prune(t, 1, "old")
	in.Data.Deltas, in.Data.Candidates = nil, nil
	if out := b.mustCommit(t, in); len(out) > 0 || len(b.journal.effects) != 1 {
		t.Errorf("%v, %d effects", out, len(b.journal.effects))
	}
}
