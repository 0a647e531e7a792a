package decider

import (
	"testing"
	"time"

	"palimpsest/internal/memory"

	"palimpsest/pkg/events"
)

// A mark keeps a candidate back only if it names all of its sources.
func TestDistrusted(t *testing.T) {
	t.Parallel()
	episodes := []events.EpisodeRef{{ID: "e1", Session: "bad"}, {ID: "e2", Session: "good", SourceNode: "web"}}
	session := events.Hold{Why: events.WhyQuarantine, Distrust: &events.Distrust{Session: "bad"}}
	node := events.Hold{Why: events.WhyQuarantine, Distrust: &events.Distrust{SourceNode: "web"}}
	message := events.Hold{Why: events.WhyQuarantine, Distrust: &events.Distrust{Episode: "e2"}}
	for _, row := range []struct {
		sources []string
		held    []events.Hold
		want    bool
	}{
		{[]string{"e1"}, []events.Hold{session}, true},
		{[]string{"e1", "e2"}, []events.Hold{session}, false},
		{[]string{"e1", "e2"}, []events.Hold{session, node}, true},
		{[]string{"e2"}, []events.Hold{message}, true},
		{[]string{"e3"}, []events.Hold{session, node}, false}, // not of the batch
		{nil, []events.Hold{session}, false},
		{[]string{"e1"}, []events.Hold{{Why: "hedged"}}, false},
	} {
		if got := distrusted(events.Candidate{SourceEpisodeIDs: row.sources}, episodes, row.held); got != row.want {
			t.Errorf("%v under %d marks: %v", row.sources, len(row.held), got)
		}
	}
}

// No clock ends a quarantine: its candidates wait for a caller.
func TestQuarantineDoesNotExpire(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	mark := events.Hold{
		ID: "quarantine-1", HeldAt: noon, Since: noon, Count: 1, Why: events.WhyQuarantine, Distrust: &events.Distrust{Session: "s1"},
		Candidate: events.Candidate{ID: "quarantine-1", Kind: events.FactSemantic, Text: "no fact is made of s1", EventTime: noon},
	}
	in := batch(says("e1", "likes", "rum", 1))
	in.Data.Episodes = []events.EpisodeRef{{ID: "e1", Session: "s1"}}
	j, err := d.s.judge(in, memory.Rule{}, "test", []events.Hold{mark})
	if err != nil || len(j.passed) != 0 || len(j.deltas) != 1 {
		t.Fatalf("%+v, %v", j, err)
	}
	hold := j.deltas[0].(events.Add).Payload().Hold
	if hold.Due != nil || hold.Why != events.WhyQuarantined {
		t.Errorf("held as %q until %v", hold.Why, hold.Due)
	}

	due := noon.Add(time.Hour) // as versions before wrote it
	hold.Due = &due
	d.ask(events.OpUndo, func(c *events.CommandRequested) { c.Undo = []events.UndoStep{{Hold: hold}} })
	out, err := d.s.command(t.Context(), events.Event[events.CommandRequested]{
		Meta: events.Meta{ID: "due", Time: due},
		Data: events.CommandRequested{Header: events.Header{Scope: owner}, CommandRef: events.CommandRef{RequestID: "due", Op: events.OpReleaseDue}, HoldID: hold.ID, At: due},
	})
	if err != nil || len(out) != 0 {
		t.Errorf("when it is due: %v, %v", out, err)
	}
}
