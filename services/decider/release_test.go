package decider

import (
	"context"
	"fmt"
	"testing"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/pkg/events"
)

// moves says that the user lives somewhere else by now.
func moves(n int) events.Candidate {
	c := says(fmt.Sprint("m", n), "lives_in", fmt.Sprint("P", n), uint64(n))
	c.Cardinality = events.One
	return c
}

// churning is a desk at which a fact may change twice in two days, and did; a
// third change is held.
func churning(t *testing.T) *desk {
	t.Helper()
	f := newFake()
	d := &desk{fake: f, t: t, s: open(t, f, Config{Churn: Churn{Limit: 2, Window: 48 * time.Hour}})}
	d.knowing(moves(1), moves(2), moves(3), moves(4))
	if held := f.mem.Held(); len(held) != 1 || held[0].Candidate.Object != "P4" || held[0].Rule != "turn" {
		t.Fatalf("held %+v", held)
	}
	return d
}

func ofHold(id string) func(*events.CommandRequested) {
	return func(c *events.CommandRequested) { c.HoldID = id }
}

// carryOut runs a command on a held candidate, and commits it.
func (d *desk) carryOut(op events.CommandOp, hold string, at time.Time) events.DeltasDecided {
	d.t.Helper()
	payloads, err := d.s.command(context.Background(), events.Event[events.CommandRequested]{
		Meta: events.Meta{ID: "m" + at.String(), Time: at},
		Data: events.CommandRequested{
			Header: events.Header{Scope: owner}, CommandRef: events.CommandRef{RequestID: "r", Op: op}, Actor: "api:test", At: at, HoldID: hold,
		},
	})
	if err != nil {
		d.t.Fatal(err)
	}
	if len(payloads) == 0 {
		return events.DeltasDecided{}
	}
	out := payloads[0].(events.DeltasDecided) //nolint:forcetypeassert // a panic fails the test
	if out.Asked == nil || out.Validate() != nil {
		d.t.Errorf("%+v", out)
	}
	if _, err := d.mem.Commit(out, at); err != nil {
		d.t.Fatal(err)
	}
	return out
}

func TestReleaseByCommand(t *testing.T) {
	t.Parallel()
	d := churning(t)
	out := d.carryOut(events.OpRelease, d.mem.Held()[0].ID, noon.Add(time.Hour))
	d.want(out, events.Outcome{}, false, "update contradiction")
	p := out.Deltas[0].Provenance()
	if p.DecidedBy != "api:test" || len(p.SourceEpisodeIDs) != 1 || d.only().Object != "P4" || len(d.mem.Held()) != 0 {
		t.Errorf("provenance %+v, fact %+v", p, d.only())
	}
	out, outcome := d.ask(events.OpRelease, ofHold("gone"))
	d.want(out, outcome, true, "noop changed_since")
}

func TestReleaseWhenDue(t *testing.T) {
	t.Parallel()
	d := churning(t)
	h := d.mem.Held()[0]
	out := d.carryOut(events.OpReleaseDue, h.ID, h.Due.Add(-time.Second))
	d.want(out, events.Outcome{}, false, "add churn")
	out = d.carryOut(events.OpReleaseDue, h.ID, *h.Due)
	d.want(out, events.Outcome{}, false, "update contradiction")
	if p := out.Deltas[0].Provenance(); p.DecidedBy != deterministic.Name || d.only().Object != "P4" || len(d.mem.Held()) != 0 {
		t.Errorf("provenance %+v, fact %+v", p, d.only())
	}
	if out = d.carryOut(events.OpReleaseDue, h.ID, *h.Due); out.Command != nil {
		t.Errorf("released twice: %+v", out)
	}
}

func TestReleaseOfWhatCannotBeDecided(t *testing.T) {
	t.Parallel()
	d := churning(t)
	rewrite := moves(5)
	rewrite.Intent, rewrite.Replaces = "update", []string{d.only().ID}
	out, _ := decided(t, d.s, batch(rewrite))
	if _, err := d.mem.Commit(out, noon); err != nil {
		t.Fatal(err)
	}
	h := d.mem.Held()[0]
	h.Candidate.Replaces = []string{"nowhere"}
	lost := newFake()
	desk := &desk{fake: lost, t: t, s: open(t, lost, Config{})}
	lost.mem.Hold(h)
	got := desk.carryOut(events.OpReleaseDue, h.ID, *h.Due)
	desk.want(got, events.Outcome{}, false, "noop fact_conflict")
	if len(lost.mem.Held()) != 0 {
		t.Error("it is held for ever")
	}
}

func TestCommandsOnAFactWithAHold(t *testing.T) {
	t.Parallel()
	t.Run("correct is not bounded, and overtakes", func(t *testing.T) {
		t.Parallel()
		d := churning(t)
		out, outcome := d.ask(events.OpCorrect, on(d.only().ID), stating(moves(9)))
		d.want(out, outcome, false, "update requested", "noop churn")
		if d.only().Object != "P9" || len(d.mem.Held()) != 0 {
			t.Errorf("fact %+v, held %v", d.only(), d.mem.Held())
		}
	})
	t.Run("remember is bounded", func(t *testing.T) {
		t.Parallel()
		d := churning(t)
		out, outcome := d.ask(events.OpRemember, stating(moves(9)))
		d.want(out, outcome, false, "noop churn", "add churn")
		held := d.mem.Held()
		if d.only().Object != "P3" || len(held) != 1 || held[0].Rule != "command" || outcome.Results[1].FactID != d.only().ID {
			t.Fatalf("fact %+v, held %+v, outcome %+v", d.only(), held, outcome)
		}
		got := d.carryOut(events.OpReleaseDue, held[0].ID, *held[0].Due)
		d.want(got, events.Outcome{}, false, "update contradiction")
	})
	t.Run("delete forgets what is held", func(t *testing.T) {
		t.Parallel()
		d := churning(t)
		out, outcome := d.ask(events.OpDelete, on(d.only().ID))
		d.want(out, outcome, false, "delete requested", "noop held_expired")
		if len(d.mem.Held()) != 0 {
			t.Errorf("held %v", d.mem.Held())
		}
	})
	t.Run("delete of a scope too", func(t *testing.T) {
		t.Parallel()
		d := churning(t)
		d.ask(events.OpDeleteScope, func(c *events.CommandRequested) { c.Session = "another" })
		if len(d.mem.Held()) != 1 {
			t.Error("another session's end takes it")
		}
		d.ask(events.OpDeleteScope)
		if len(d.mem.Held()) != 0 {
			t.Errorf("held %v", d.mem.Held())
		}
	})
	t.Run("confirm leaves it", func(t *testing.T) {
		t.Parallel()
		d := churning(t)
		out, outcome := d.ask(events.OpConfirm, on(d.only().ID))
		d.want(out, outcome, false, "update confirmed")
		if len(d.mem.Held()) != 1 {
			t.Error("nothing is held")
		}
	})
}

func TestChurnConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []Churn{{Limit: -1}, {Limit: 2_000_000}, {Window: time.Millisecond}, {Window: 1000 * time.Hour}} {
		if err := (Config{Churn: c}).Validate(); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	f := newFake()
	if got, want := open(t, f, Config{}).breaker(), (decide.Breaker{Limit: 20, Window: time.Hour}); got != want {
		t.Errorf("default %+v, want %+v", got, want)
	}
}
