package consolidator

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"palimpsest/pkg/events"
)

// held is a decided batch that holds a candidate on a fact, the count-th of its
// kind.
func held(t testing.TB, n, basis uint64, id string, count uint64) events.Event[events.DeltasDecided] {
	t.Helper()
	in := turn(t, n, basis, id)
	p := in.Data.Deltas[0].Provenance()
	p.Reason = events.ReasonChurn
	due, since := noon.Add(time.Hour), noon
	if count > 1 {
		since = noon.Add(-time.Minute)
	}
	add, err := events.NewAdd(p, events.FactPayload{Hold: &events.Hold{
		ID: p.CandidateID, Candidate: in.Data.Candidates[0], HeldAt: noon, Since: since, Count: count, Why: "churn", FactID: "f", Due: &due,
	}})
	if err != nil {
		t.Fatal(err)
	}
	in.Data.Deltas = events.Deltas{add}
	return in
}

func TestChurnIsReported(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var log bytes.Buffer
	b.deps.Logger = slog.New(slog.NewTextHandler(&log, nil))
	var seen []uint64
	b.deps.Observe = func(e events.EffectCommitted) { seen = append(seen, e.Revision) }
	b.must(t, held(t, 1, 0, "h1", 1))
	b.must(t, held(t, 2, 1, "h2", 2))
	b.must(t, held(t, 2, 1, "h2", 2)) // delivered again
	if n := strings.Count(log.String(), "changes too often"); n != 1 || !strings.Contains(log.String(), "fact=f") {
		t.Errorf("%d warnings, want one for the first:\n%s", n, &log)
	}
	if len(seen) != 2 || seen[0] != 1 || seen[1] != 2 {
		t.Errorf("observed revisions %v", seen)
	}
}

// release is the decision to take a candidate out of the held buffer.
func release(t testing.TB, b *bench, request, hold string) events.Event[events.DeltasDecided] {
	t.Helper()
	p := provenanceOf("", events.ReasonNew)
	p.ID, p.CandidateID, p.RequestID = "d-"+request, hold, request
	f := tea
	in := asked(b.decided("", made[events.Add](t)(events.NewAdd(p, events.FactPayload{Fact: &f}))))
	in.ID, in.CorrelationID = "m-"+request, request
	in.Data.Command.RequestID, in.Data.Asked.RequestID = request, request
	in.Data.Command.Op, in.Data.Asked.Op, in.Data.Asked.HoldID = events.OpRelease, events.OpRelease, hold
	in.Data.Candidates = []events.Candidate{{ID: hold, Text: tea.Text, EventTime: noon}}
	return in
}

func TestReleasedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, held(t, 1, 0, "h1", 1))
	first, second := release(t, b, "r1", "c-h1"), release(t, b, "r2", "c-h1")
	b.must(t, first)
	e := b.journal.effects[1].Data
	want := events.Tally{Settled: []events.Settlement{{Rule: "turn", Decided: 1}}}
	if len(e.Facts) != 1 || len(e.Released) != 1 || len(b.store.holds) != 0 || len(e.Tally.Settled) != 1 || e.Tally.Settled[0] != want.Settled[0] || e.Tally.Candidates != 0 {
		t.Errorf("released: %+v", e)
	}
	b.must(t, second)
	e = b.journal.effects[2].Data
	if len(e.Facts) != 0 || len(e.Tally.Settled) != 0 || e.Tally.Candidates != 0 || !strings.Contains(e.Outcomes[0].Conflict, "no longer held") {
		t.Errorf("released again: %+v", e)
	}
	if out := b.must(t, first); len(out) != 1 || len(b.journal.effects) != 3 {
		t.Errorf("a release that is delivered again gives %v", out)
	}
}

// A release on which nothing is decided is no conflict while its candidate is
// held.
func TestReleaseWithoutDeltas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, held(t, 1, 0, "h1", 1))
	in := release(t, b, "r1", "c-h1")
	in.Data.Deltas = nil
	b.must(t, in)
	e := b.journal.effects[1].Data
	if len(e.Outcomes) != 1 || e.Outcomes[0].Conflict != "" {
		t.Errorf("released nothing: %+v", e.Outcomes)
	}
}
