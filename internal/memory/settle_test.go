package memory

import (
	"testing"

	"palimpsest/pkg/events"
)

// The outcome of a command counts the facts that it closed, each once.
func TestOutcomeCountsClosedFacts(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.commit(t, w.input(batch(addFact("d1", fact("f1", "one", noon, "e1")), addFact("d2", fact("f2", "two", noon, "e2")))))
	for want, deltas := range [][]events.Delta{
		0: {noopAbout("d3", events.ReasonDuplicate, "f1", "e9")},
		1: {deleteFacts("d3", events.ReasonRequested, "f1", "unknown")},
		2: {deleteFacts("d3", events.ReasonRequested, "f1", "f2"), deleteFacts("d4", events.ReasonRequested, "f1", "f2")},
	} {
		b := batch(deltas...)
		b.Candidates, b.Command = nil, &events.CommandRef{RequestID: "r", Op: events.OpDeleteScope}
		effects, err := Plan(w.input(b))
		if err != nil {
			t.Fatal(err)
		}
		if o := effects[len(effects)-1].Outcomes[0]; o.Closed != want {
			t.Errorf("closed %d, want %d: %+v", o.Closed, want, o.Results)
		}
	}
}
