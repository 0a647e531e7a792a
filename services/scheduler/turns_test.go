package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero value is refused: %v", err)
	}
	for name, cfg := range map[string]Config{
		"slots":     {Slots: -1},
		"episodes":  {TickEpisodes: 201},
		"no id":     only(memory.Rule{}),
		"twice":     only(turn, turn),
		"bad cron":  only(memory.Rule{ID: "x", Cadence: memory.Cadence{Cron: "often"}}),
		"no fire":   only(memory.Rule{ID: "x", Cadence: memory.Cadence{Cron: "0 0 30 2 *"}}),
		"overdue":   {Overdue: 2 * time.Hour},
		"long idle": {SessionIdle: 500 * 24 * time.Hour},
	} {
		if _, err := New(cfg, Deps{Schedule: newWorld(), Episodes: newWorld()}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("missing dependencies are accepted")
	}
	disabled := turn
	disabled.Enabled = false
	w := newWorld()
	s := w.service(t, only(disabled))
	out, err := s.wake(t.Context(), w.say(alice, 1))
	if n := len(ticksOf(t, out, err)); n != 0 || len(s.Stages()) != 7 || s.Name() != "scheduler" {
		t.Errorf("a disabled rule ticks %d times", n)
	}
}

// TestEveryScopeHasItsTurn: more scopes than a queue holds are always due, and each
// served one is due again at once. Each has its turn.
func TestEveryScopeHasItsTurn(t *testing.T) {
	t.Parallel()
	const users, room = 50, 4
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{turn}, Slots: 1})
	s.waiting.most = room
	var underWay []events.TickIssued
	speak := func(name string) {
		out, err := s.wake(t.Context(), w.say(user("p", name), 1))
		underWay = append(underWay, ticksOf(t, out, err)...)
	}
	for n := range users {
		speak(fmt.Sprintf("%02d", n))
	}
	served := map[string]int{}
	for range 4 * users {
		select {
		case <-s.sweepAgain:
			out, err := s.sweep(t.Context(), w.clock())
			underWay = append(underWay, ticksOf(t, out, err)...)
		default:
		}
		tick := underWay[0]
		served[tick.Scope.User]++
		c, _ := w.apply(tick, false)
		out, err := s.committed(t.Context(), c)
		underWay = append(underWay[1:], ticksOf(t, out, err)...)
		speak(tick.Scope.User)
		w.pass(time.Second)
	}
	if len(served) != users {
		t.Errorf("%d of %d were served: %v", len(served), users, served)
	}
}

// TestSweepsDuringAFullQueueOmitNoScope: while an overflowed queue is served, sweeps
// add nothing to it. The first sweep after it continues with the refused scopes.
func TestSweepsDuringAFullQueueOmitNoScope(t *testing.T) {
	t.Parallel()
	const users, room = 23, 4
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{turn}, Slots: 1})
	s.waiting.most = room
	var want, got []string
	for n := range users {
		want = append(want, fmt.Sprintf("%02d", n))
		w.say(user("p", want[n]), 1)
	}
	var underWay []events.TickIssued
	for len(got) < users {
		for range 3 {
			out, err := s.sweep(t.Context(), w.clock())
			underWay = append(underWay, ticksOf(t, out, err)...)
		}
		tick := underWay[0]
		got = append(got, tick.Scope.User)
		c, _ := w.apply(tick, false)
		w.say(tick.Scope, 1) // its wake-up is lost, so the sweep alone finds it
		out, err := s.committed(t.Context(), c)
		underWay = append(underWay[1:], ticksOf(t, out, err)...)
		w.pass(time.Second)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("served (-want +got):\n%s", diff)
	}
}

// TestSweepReadsNothingMoreWhereNothingIsDue: of the scopes above a watermark most
// wait for a session end or more episodes, and one page tells so of many.
func TestSweepReadsNothingMoreWhereNothingIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(memory.Rule{ID: "sleep", Cadence: memory.Cadence{Every: 100, Cron: "0 3 * * *", SessionEnd: true}, Enabled: true}))
	for n := range 200 {
		w.say(scope.Scope{Project: "p", User: fmt.Sprint(n), Session: "s"}, 3)
	}
	w.pass(time.Minute)
	if _, err := s.sweep(t.Context(), w.clock()); err != nil { // serves the fire of this morning
		t.Fatal(err)
	}
	for range 2 {
		before := w.reads
		out, err := s.sweep(t.Context(), w.clock())
		if n := len(ticksOf(t, out, err)); n != 0 || w.reads != before {
			t.Fatalf("%d ticks, %d reads", n, w.reads-before)
		}
	}
	ended := scope.Scope{Project: "p", User: "7", Session: "s"}
	w.end(ended, 3)
	out, err := s.sweep(t.Context(), w.clock())
	if ticks := ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Scope != ended.Fact() || len(ticks[0].SessionEnds) != 1 {
		t.Errorf("ticks %+v", ticks)
	}
	before := w.reads
	out, err = s.sweep(t.Context(), w.clock()) // its tick is under way
	if n := len(ticksOf(t, out, err)); n != 0 || w.reads-before > 1 {
		t.Errorf("%d ticks, %d reads", n, w.reads-before)
	}
	w.pass(2 * time.Minute)
	out, err = s.sweep(t.Context(), w.clock())
	if ticks := ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Attempt != 1 {
		t.Errorf("overdue: %+v", ticks)
	}
}
