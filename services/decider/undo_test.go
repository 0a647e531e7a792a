package decider

import (
	"testing"

	"palimpsest/pkg/events"
)

// The steps of an undo close a fact, bring a version back as it was, and change
// nothing where one of their facts has another revision by now.
func TestUndo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ask(events.OpRemember, stating(says("", "likes", "tea", 1)))
	stated := d.only()
	step := func(steps ...events.UndoStep) func(*events.CommandRequested) {
		return func(c *events.CommandRequested) { c.Undo = steps }
	}
	out, outcome := d.ask(events.OpUndo, step(events.UndoStep{FactID: stated.ID, Revision: 7}))
	d.want(out, outcome, true, "noop changed_since")

	out, outcome = d.ask(events.OpUndo, step(events.UndoStep{FactID: stated.ID, Revision: 1}))
	d.want(out, outcome, false, "delete undone")
	if f := d.only(); f.ValidUntil == nil || !f.ValidUntil.Equal(f.ValidFrom) {
		t.Errorf("the undone fact holds from %v until %v", f.ValidFrom, f.ValidUntil)
	}

	out, outcome = d.ask(events.OpUndo, step(events.UndoStep{FactID: stated.ID, Revision: 2, Restore: &stated}))
	d.want(out, outcome, false, "update undone")
	if f := d.only(); f.ValidUntil != nil || f.Revision != 3 || f.Confidence != stated.Confidence || !f.EventTime.Equal(stated.EventTime) {
		t.Errorf("brought back as %+v, want %+v", f, stated)
	}

	hold := events.Hold{ID: "held", Candidate: says("e2", "likes", "rum", 2), Why: "hedged"}
	out, outcome = d.ask(events.OpUndo, step(events.UndoStep{Hold: &hold}))
	d.want(out, outcome, false, "add undone")
	out, outcome = d.ask(events.OpUndo, step(events.UndoStep{HoldID: "held"}))
	d.want(out, outcome, false, "noop undone")
	if out, outcome = d.ask(events.OpUndo, step(events.UndoStep{HoldID: "held"})); len(out.Deltas) != 0 || outcome.Conflict != "" {
		t.Errorf("dismissed twice: %v, conflict %q", kinds(out.Deltas), outcome.Conflict)
	}
}

// A value that came to hold between the plan of an undo and its command is not joined by
// the former one, unless the command closes it.
func TestUndoBringsNoSecondValueBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	lives := func(where string) events.Candidate {
		c := says("", "lives_in", where, 1)
		c.Cardinality = events.One
		return c
	}
	d.ask(events.OpRemember, stating(lives("Oslo")))
	oslo := d.only()
	d.ask(events.OpDelete, on(oslo.ID))
	d.ask(events.OpRemember, stating(lives("Paris")))
	var paris events.Fact
	for _, f := range d.mem.Facts() {
		if f.ID != oslo.ID {
			paris = f
		}
	}
	step := events.UndoStep{FactID: oslo.ID, Revision: 2, Restore: &oslo}
	undo := func(c *events.CommandRequested) { c.Undo = []events.UndoStep{step} }
	out, outcome := d.ask(events.OpUndo, undo)
	d.want(out, outcome, true, "noop changed_since")
	if out.Asked == nil || out.Footprint == nil || len(out.Footprint.Keys) == 0 {
		t.Errorf("a later decision on the same matter does not make it stale: %+v", out)
	}
	step.Replaces = []string{paris.ID}
	out, outcome = d.ask(events.OpUndo, undo)
	d.want(out, outcome, false, "update undone")
	holding := 0
	for _, f := range d.mem.Facts() {
		if f.ValidUntil == nil {
			holding++
		}
	}
	if holding != 1 {
		t.Errorf("%d facts hold, want 1", holding)
	}
}
