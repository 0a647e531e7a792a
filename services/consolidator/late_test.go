package consolidator

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// buried is a batch that stands in for one that was buried.
func buried(t *testing.T, n, basis uint64, factID string) events.Event[events.DeltasDecided] {
	t.Helper()
	in := turn(t, n, basis, factID)
	in.Data.Skipped, in.Data.Deltas, in.Data.Candidates = "poison", nil, nil
	return in
}

func late(t *testing.T, n, basis uint64, factID string) events.Event[events.DeltasDecided] {
	t.Helper()
	in := turn(t, n, basis, factID)
	in.ID, in.Data.Cause = "late-"+factID, events.CauseLate
	return in
}

func (b *bench) mustCommit(t *testing.T, in events.Event[events.DeltasDecided]) []events.Payload {
	t.Helper()
	out, err := b.commit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A late batch makes good what was skipped, once: it moves no watermark, and
// comes to nothing when it is delivered again, before or after the scope went on.
func TestLateBatchIsSettledOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustCommit(t, buried(t, 1, 0, "late"))
	b.mustCommit(t, turn(t, 2, 1, "f2"))
	in := late(t, 1, 2, "late")
	if out := b.mustCommit(t, in); !slices.Equal(announced(out), []string{"req-late"}) {
		t.Errorf("announced %v", announced(out))
	}
	e := b.journal.effects[2].Data
	if b.store.state.Watermarks["turn"] != 2 || b.store.facts["late"].ID == "" || e.Watermark != nil || !cmp.Equal(e.Tally, events.Tally{Candidates: 1, Decided: 1}) {
		t.Errorf("state %+v, effect %+v", b.store.state, e)
	}
	in.Delivery = 2
	for range 2 {
		if out := b.mustCommit(t, in); slices.ContainsFunc(out, func(p events.Payload) bool { return p.Kind() != events.KindOutcomeAnnounced }) {
			t.Errorf("a settled late batch is followed by %v", out)
		}
		if n := len(b.journal.effects); n != 3 {
			t.Fatalf("%d effects", n)
		}
	}
}

// A late batch is sent back like any other, and keeps its cause.
func TestStaleLateBatchStaysLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustCommit(t, buried(t, 1, 0, "late"))
	in := late(t, 1, 1, "late")
	b.mustCommit(t, asked(b.decided("quick", add(t, like("x", "late")))))
	out := b.mustCommit(t, in)
	if again, ok := out[0].(events.CandidatesExtracted); !ok || again.Cause != events.CauseLate || again.Range != in.Data.Range {
		t.Fatalf("out %v, want the candidates again", out)
	}
}

// A range that was issued again and consolidated leaves a retry nothing to do.
func TestLateBatchOfAConsolidatedRangeIsDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustCommit(t, turn(t, 1, 0, "f1"))
	if out := b.mustCommit(t, late(t, 1, 1, "again")); len(out) > 0 || len(b.journal.effects) != 1 {
		t.Errorf("out %v, %d effects", out, len(b.journal.effects))
	}
}

// A letter that is retried at once may arrive before the skip of its range.
func TestLateBatchWaitsForItsRangeToBeSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := late(t, 1, 0, "late")
	if _, err := b.commit(t.Context(), in); err == nil || pipeline.IsRefused(err) {
		t.Fatalf("before the range is skipped: %v, want a retry", err)
	}
	b.mustCommit(t, buried(t, 1, 0, "late"))
	if out := b.mustCommit(t, in); !slices.Equal(announced(out), []string{"req-late"}) {
		t.Fatalf("out %v: what stands in for it changed nothing that it was decided on", out)
	}
	if b.store.facts["late"].ID == "" || len(b.store.skipped) > 0 {
		t.Errorf("facts %v, skipped %v", b.store.facts, b.store.skipped)
	}
}

// Candidates that were refused one by one were counted with their range.
func TestLateCandidateIsCountedWithItsRange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustCommit(t, turn(t, 1, 0, "f1"))
	in := late(t, 1, 1, "late")
	in.Data.Range = events.Range{From: 1, To: 1}
	b.mustCommit(t, in)
	if e := b.journal.effects[1].Data; !cmp.Equal(e.Tally, events.Tally{}) || b.store.facts["late"].ID == "" || b.store.state.Watermarks["turn"] != 1 {
		t.Errorf("effect %+v", e)
	}
}

// A command that was buried has an outcome that says so, once; handed in again
// by an operator it is carried out.
func TestRefusedCommandHasAnOutcome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustCommit(t, turn(t, 1, 0, "f1"))
	whole := remove(t, "f1", 1)
	standIn, ok := whole.Data.Skip("invalid_field: op: is not decided here").(events.DeltasDecided)
	if !ok {
		t.Fatal("a command's batch has no stand-in")
	}
	in := whole
	in.ID, in.Data = "m-refused", standIn
	for range 2 {
		out := b.mustCommit(t, in)
		if !slices.Equal(announced(out), []string{"r-1"}) || len(b.journal.effects) != 2 {
			t.Fatalf("announced %v, %d effects", announced(out), len(b.journal.effects))
		}
	}
	if o := b.store.outcomes[1]; o.Skipped != standIn.Skipped || o.Rule != memory.RuleCommand || len(o.Results) != 0 {
		t.Errorf("outcome %+v", o)
	}
	b.mustCommit(t, whole)
	if f := b.store.facts["f1"]; f.ValidUntil == nil || len(b.store.outcomes) != 3 {
		t.Errorf("fact %+v, %d outcomes", f, len(b.store.outcomes))
	}
	b.mustCommit(t, in) // the stand-in delivered once more
	if len(b.store.outcomes) != 3 {
		t.Errorf("%d outcomes", len(b.store.outcomes))
	}
}
