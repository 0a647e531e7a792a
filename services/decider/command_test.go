package decider

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// desk carries commands out on one scope.
type desk struct {
	*fake
	t *testing.T
	s *Service
	n int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	f := newFake()
	return &desk{fake: f, t: t, s: open(t, f, Config{})}
}

func (d *desk) knowing(candidates ...events.Candidate) *desk {
	d.t.Helper()
	commit(d.t, d.fake, d.s, batch(candidates...))
	return d
}

// ask runs a command, commits it and returns what was decided and its outcome.
func (d *desk) ask(op events.CommandOp, with ...func(*events.CommandRequested)) (events.DeltasDecided, events.Outcome) {
	d.t.Helper()
	d.n++
	at := noon.Add(time.Duration(d.n) * 24 * time.Hour)
	c := events.CommandRequested{
		Header: events.Header{Scope: owner}, CommandRef: events.CommandRef{RequestID: "r" + at.String(), Op: op}, Actor: "api:test", At: at,
	}
	for _, w := range with {
		w(&c)
	}
	payloads, err := d.s.command(context.Background(), events.Event[events.CommandRequested]{
		Meta: events.Meta{ID: c.RequestID, Time: at}, Data: c,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	out, ok := payloads[0].(events.DeltasDecided)
	if !ok || out.Validate() != nil {
		d.t.Fatalf("payload %T is invalid: %v", payloads[0], out.Validate())
	}
	for _, delta := range out.Deltas {
		if p := delta.Provenance(); p.RequestID != c.RequestID || p.DecidedBy != "api:test" {
			d.t.Errorf("provenance %+v", p)
		}
	}
	effects, err := d.mem.Commit(out, at)
	if err != nil {
		d.t.Fatal(err)
	}
	return out, effects[len(effects)-1].Outcomes[0]
}

func on(id string) func(*events.CommandRequested) {
	return func(c *events.CommandRequested) { c.FactID = id }
}

func stating(c events.Candidate) func(*events.CommandRequested) {
	c.SourceEpisodeIDs, c.EventTime, c.SessionIDs = nil, time.Time{}, nil
	return func(r *events.CommandRequested) { r.Candidate = &c }
}

func (d *desk) only() events.Fact {
	d.t.Helper()
	facts := d.mem.Facts()
	if len(facts) != 1 {
		d.t.Fatalf("%d facts, want 1", len(facts))
	}
	return facts[0]
}

func (d *desk) want(out events.DeltasDecided, outcome events.Outcome, conflict bool, want ...string) {
	d.t.Helper()
	if diff := cmp.Diff(want, kinds(out.Deltas), cmpopts.EquateEmpty()); diff != "" {
		d.t.Errorf("deltas (-want +got):\n%s", diff)
	}
	if (outcome.Conflict != "") != conflict {
		d.t.Errorf("conflict %q, want one: %v", outcome.Conflict, conflict)
	}
}

func TestRemember(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	out, outcome := d.ask(events.OpRemember, stating(says("", "likes", "tea", 1)))
	d.want(out, outcome, false, "add new")
	if f := d.only(); f.SourceType != events.SourceAPI || f.SourceRole != events.RoleOperator || f.EventTime.IsZero() {
		t.Errorf("remembered %+v", f)
	}
	out, outcome = d.ask(events.OpRemember, stating(says("", "likes", "tea", 1)))
	d.want(out, outcome, false, "noop duplicate")
	unsafe := says("", "likes", "doors", 1)
	unsafe.Unsafe = true
	out, outcome = d.ask(events.OpRemember, stating(unsafe))
	d.want(out, outcome, false, "noop safety")
}

func TestCorrect(t *testing.T) {
	t.Parallel()
	d := newDesk(t).knowing(says("e1", "likes", "tea", 1))
	id := d.only().ID
	c := says("", "likes", "tea", 1)
	c.Text = "The user likes green tea."
	out, outcome := d.ask(events.OpCorrect, on(id), stating(c))
	d.want(out, outcome, false, "update requested")
	if f := d.only(); f.ID != id || f.Text != c.Text || f.Revision != 2 {
		t.Errorf("corrected %+v", f)
	}
	out, outcome = d.ask(events.OpCorrect, on("nowhere"), stating(c))
	d.want(out, outcome, true, "noop changed_since")
	out, outcome = d.ask(events.OpCorrect, on(id), stating(says("", "likes", "mate", 1)), func(r *events.CommandRequested) {
		r.IfMatch = map[string]uint64{id: 1}
	})
	d.want(out, outcome, true, "update requested")
	if f := d.only(); f.Revision != 2 {
		t.Errorf("a correction of another revision was applied: %+v", f)
	}
	d.knowing(says("e1", "likes", "tea", 1))
	if f := d.only(); f.Text != c.Text {
		t.Errorf("the words that were corrected came back: %q", f.Text)
	}
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	d := newDesk(t).knowing(says("e1", "likes", "tea", 1))
	id := d.only().ID
	out, outcome := d.ask(events.OpConfirm, on(id))
	d.want(out, outcome, false, "update confirmed")
	if f := d.only(); !f.Confirmed || f.Confidence != 1 || f.DecayRate != 0 || f.Text != "The user likes tea." {
		t.Errorf("confirmed %+v", f)
	}
	out, outcome = d.ask(events.OpConfirm, on(id))
	d.want(out, outcome, false, "noop confirmed")
	out, outcome = d.ask(events.OpConfirm, on("nowhere"))
	d.want(out, outcome, true, "noop changed_since")
}

func TestDeleteAndRestore(t *testing.T) {
	t.Parallel()
	d := newDesk(t).knowing(says("e1", "likes", "tea", 1))
	id := d.only().ID
	out, outcome := d.ask(events.OpDelete, on(id))
	d.want(out, outcome, false, "delete requested")
	if f := d.only(); f.ValidUntil == nil {
		t.Errorf("deleted %+v", f)
	}
	out, outcome = d.ask(events.OpDelete, on(id))
	d.want(out, outcome, true, "noop changed_since")
	d.knowing(says("e1", "likes", "tea", 1)) // the same words are read again
	if f := d.only(); f.ValidUntil == nil {
		t.Errorf("what was forgotten came back: %+v", f)
	}
	out, outcome = d.ask(events.OpRestore, on(id))
	d.want(out, outcome, false, "update restored")
	if f := d.only(); f.ValidUntil != nil || f.ID != id {
		t.Errorf("restored %+v", f)
	}
	out, outcome = d.ask(events.OpRestore, on(id))
	d.want(out, outcome, false, "noop restored")
}

// Restore after delete is identity: the fact is as it was, also one that is hardly
// believed, is an event or ends by itself. The history tells of both.
func TestRestoreAfterDeleteIsIdentity(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(*events.Candidate){
		"many values":     func(*events.Candidate) {},
		"one value":       func(c *events.Candidate) { c.Cardinality = events.One },
		"hardly believed": func(c *events.Candidate) { c.Confidence = 0.04 },
		"an event":        func(c *events.Candidate) { c.Category, c.EventTime = "event", noon.AddDate(0, 0, 20) },
		"from before":     func(c *events.Candidate) { from := noon.AddDate(-1, 0, 0); c.ValidFrom = &from },
		"an end":          func(c *events.Candidate) { until := noon.AddDate(0, 1, 0); c.ValidUntil = &until },
		"metadata":        func(c *events.Candidate) { c.Metadata = map[string]any{"channel": "mail"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := says("e1", "likes", "tea", 1)
			with(&c)
			d := newDesk(t).knowing(c)
			before := d.only()
			d.ask(events.OpDelete, on(before.ID))
			out, outcome := d.ask(events.OpRestore, on(before.ID))
			d.want(out, outcome, false, "update restored")
			history := cmpopts.IgnoreFields(events.Fact{}, "Revision", "Supersedes", "UpdatedAt", "RestoredAt")
			if diff := cmp.Diff(before, d.only(), history); diff != "" {
				t.Errorf("(-before the delete +after the restore):\n%s", diff)
			}
			if f := d.only(); f.Revision != 3 || f.RestoredAt == nil || !f.RestoredAt.Equal(f.UpdatedAt) {
				t.Errorf("restored %+v", f)
			}
		})
	}
}

// An end that has passed does not count again: the caller says that the fact holds.
func TestRestoreOfAnExpiredFact(t *testing.T) {
	t.Parallel()
	c, until := says("e1", "lives_in", "Rome", 1), noon.Add(time.Hour)
	c.ValidUntil = &until
	d := newDesk(t).knowing(c)
	out, outcome := d.ask(events.OpRestore, on(d.only().ID))
	d.want(out, outcome, false, "update restored")
	if f := d.only(); f.ValidUntil != nil {
		t.Errorf("restored %+v", f)
	}
}

func TestRestoreHoldsAgainstTheWordsThatEndedIt(t *testing.T) {
	t.Parallel()
	no := says("e2", "likes", "tea", 2)
	no.Negated, no.Text = true, "The user no longer likes tea."
	d := newDesk(t).knowing(says("e1", "likes", "tea", 1)).knowing(no)
	id := d.only().ID
	d.ask(events.OpRestore, on(id))
	d.knowing(says("e1", "likes", "tea", 1), no)
	if f := d.only(); f.ValidUntil != nil {
		t.Errorf("restored fact was ended again: %+v", f)
	}
}

// So does an appointment, and what an undo brought back.
func TestWordsFromBeforeAnUndoEndNothing(t *testing.T) {
	t.Parallel()
	dentist := says("e1", "upcoming", "dentist", 1)
	dentist.Category, dentist.EventTime = "event", noon.AddDate(0, 0, 20)
	no := says("e2", "upcoming", "dentist", 2)
	no.Negated, no.Text = true, "The user has no dentist appointment."
	d := newDesk(t).knowing(dentist)
	stated := d.only()
	undo := func(c *events.CommandRequested) {
		c.Undo = []events.UndoStep{{FactID: stated.ID, Revision: d.only().Revision, Restore: &stated}}
	}
	for op, with := range map[events.CommandOp]func(*events.CommandRequested){events.OpRestore: on(stated.ID), events.OpUndo: undo} {
		d.ask(events.OpDelete, on(stated.ID))
		d.ask(op, with)
		d.knowing(dentist, no)
		if f := d.only(); f.ValidUntil != nil {
			t.Errorf("after %s the fact was ended again: %+v", op, f)
		}
	}
}

// An undo holds against earlier words also where the fact has an end of its own, ahead.
func TestUndoOfAFactThatWillEnd(t *testing.T) {
	t.Parallel()
	tea, until := says("e1", "likes", "tea", 1), noon.AddDate(0, 1, 0)
	tea.ValidUntil = &until
	no := says("e2", "likes", "tea", 2)
	no.Negated, no.Text = true, "The user does not like tea."
	d := newDesk(t).knowing(tea)
	stated := d.only()
	d.ask(events.OpDelete, on(stated.ID))
	d.ask(events.OpUndo, func(c *events.CommandRequested) {
		c.Undo = []events.UndoStep{{FactID: stated.ID, Revision: d.only().Revision, Restore: &stated}}
	})
	d.knowing(no)
	if f := d.only(); f.ValidUntil == nil || !f.ValidUntil.Equal(until) {
		t.Errorf("ends at %v, want %v", f.ValidUntil, until)
	}
}

func TestRestoreKeepsOneValue(t *testing.T) {
	t.Parallel()
	oslo, bergen := says("e1", "lives_in", "Oslo", 1), says("e2", "lives_in", "Bergen", 2)
	oslo.Cardinality, bergen.Cardinality = events.One, events.One
	d := newDesk(t).knowing(oslo)
	id := d.only().ID
	d.ask(events.OpDelete, on(id))
	bergen.EventTime = noon.AddDate(0, 1, 0)
	d.knowing(bergen)
	d.ask(events.OpRestore, on(id))
	valid := d.mem.ValidAt(noon.AddDate(0, 2, 0))
	if len(valid) != 1 || valid[0].ID != id {
		t.Errorf("valid after the restore: %+v, want Oslo alone", valid)
	}
}

func TestDeleteScope(t *testing.T) {
	t.Parallel()
	other := says("e3", "likes", "tea", 3)
	other.SessionIDs = []string{"s2"}
	d := newDesk(t).knowing(says("e1", "likes", "tea", 1), says("e2", "likes", "jazz", 2), other)
	out, outcome := d.ask(events.OpDeleteScope, func(r *events.CommandRequested) { r.Session = "s1" })
	if len(out.Deltas) != 2 || outcome.Conflict != "" {
		t.Errorf("deltas %v, conflict %q", kinds(out.Deltas), outcome.Conflict)
	}
	valid := d.mem.ValidAt(noon.AddDate(0, 1, 0))
	if len(valid) != 1 || valid[0].Object != "tea" || !cmp.Equal(valid[0].SessionIDs, []string{"s2"}) {
		t.Errorf("valid without session s1: %+v, want tea of s2", valid)
	}
	out, outcome = d.ask(events.OpDeleteScope)
	d.want(out, outcome, false, "delete requested")
	if valid := d.mem.ValidAt(noon.AddDate(0, 1, 0)); len(valid) != 0 {
		t.Errorf("valid after the scope was forgotten: %+v", valid)
	}
	out, outcome = d.ask(events.OpDeleteScope)
	if len(out.Deltas) != 0 || outcome.Conflict != "" {
		t.Errorf("an empty scope gives %v, conflict %q", kinds(out.Deltas), outcome.Conflict)
	}
}

func TestOtherCommandsAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := d.s.command(context.Background(), events.Event[events.CommandRequested]{Data: events.CommandRequested{
		Header: events.Header{Scope: owner}, CommandRef: events.CommandRef{RequestID: "r", Op: events.OpErase}, Actor: "api:test",
	}})
	if !pipeline.IsRefused(err) {
		t.Errorf("error %v, want a reject", err)
	}
}

// A decision on all known facts carries the command, so that it can be repeated. A
// decision that names its facts by their revisions does not.
func TestCommandsThatRestOnTheScope(t *testing.T) {
	t.Parallel()
	d := newDesk(t).knowing(says("e1", "lives in", "Oslo", 1))
	id, before := d.only().ID, must(d.State(context.Background(), owner))(t)
	out, _ := d.ask(events.OpRemember, stating(says("", "likes", "tea", 0)))
	if out.Asked == nil || out.Asked.RequestID != out.Command.RequestID || out.Asked.Candidate == nil ||
		out.Basis != before.Revision || out.BasisSequence != before.AuditSeq {
		t.Errorf("remember: asked %+v, basis %d at %d, want %d at %d", out.Asked, out.Basis, out.BasisSequence, before.Revision, before.AuditSeq)
	}
	if out, _ = d.ask(events.OpConfirm, on(id)); out.Asked != nil || out.Command.IfMatch[id] == 0 {
		t.Errorf("confirm: asked %+v, if match %v", out.Asked, out.Command.IfMatch)
	}
	d.ask(events.OpDelete, on(id))
	if out, _ = d.ask(events.OpRestore, on(id)); out.Asked == nil || out.Asked.FactID != id {
		t.Errorf("restore: asked %+v", out.Asked)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestRate: a rating is on record with its value and reason, and changes no fact.
func TestRate(t *testing.T) {
	t.Parallel()
	d := newDesk(t).knowing(says("e1", "likes", "tea", 1))
	before := d.only()
	for _, tt := range []struct {
		fact   string
		rating events.Rating
		rule   string
	}{
		{before.ID, events.Rating{Value: events.RatingNegative, Reason: "it is old"}, "feedback:negative"},
		{before.ID, events.Rating{Value: events.RatingNone}, "feedback:none"},
		{"", events.Rating{Value: events.RatingPositive, EpisodeID: "answer"}, "feedback:positive"},
	} {
		out, outcome := d.ask(events.OpRate, func(c *events.CommandRequested) { c.FactID, c.Rating = tt.fact, &tt.rating })
		d.want(out, outcome, false, "noop rated")
		noop, ok := out.Deltas[0].(events.Noop)
		if p := noop.Provenance(); !ok || noop.About() != tt.fact || p.RuleID != tt.rule || (tt.rating.EpisodeID != "") != slices.Equal(p.SourceEpisodeIDs, []string{"answer"}) {
			t.Errorf("%+v: about %q, %+v", tt, noop.About(), p)
		}
		if out.Command.Rating == nil || *out.Command.Rating != tt.rating {
			t.Errorf("the batch has the rating %+v, want %+v", out.Command.Rating, tt.rating)
		}
		if diff := cmp.Diff(before, d.only()); diff != "" {
			t.Errorf("the fact changed (-want +got):\n%s", diff)
		}
	}
}
