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

func TestSweepFindsLostWakeUps(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	w.say(alice, 2)
	w.say(user("q", "bob"), 3)
	out, err := s.sweep(t.Context(), w.clock())
	if n := len(ticksOf(t, out, err)); n != 2 {
		t.Errorf("%d ticks, want 2", n)
	}
	out, err = s.sweep(t.Context(), w.clock())
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Errorf("%d ticks while those are under way", n)
	}
}

func TestSweepRepeatsWhatIsOverdue(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	out, err := s.wake(t.Context(), w.say(alice, 2))
	first, began := ticksOf(t, out, err)[0], w.clock()
	w.say(alice, 3)
	waits := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}
	for i, wait := range waits {
		w.pass(wait - time.Second)
		out, err = s.sweep(t.Context(), w.clock())
		if n := len(ticksOf(t, out, err)); n != 0 {
			t.Fatalf("attempt %d after %v", i+1, wait-time.Second)
		}
		w.pass(time.Second)
		out, err = s.sweep(t.Context(), w.clock())
		again := ticksOf(t, out, err)
		if len(again) != 1 || again[0].Attempt != i+1 || again[0].Range != first.Range {
			t.Fatalf("attempt %d: %+v", i+1, again)
		}
	}
	if n := w.underWay("p"); n != 1 {
		t.Errorf("%d claims under way, want 1", n)
	}
	late := []Late{{Scope: alice, Rule: first.Rule, Since: began.Add(time.Minute)}}
	if diff := cmp.Diff(late, s.Late()); diff != "" {
		t.Errorf("late (-want +got):\n%s", diff)
	}
	w.apply(first, false)
	if _, err := s.sweep(t.Context(), w.clock()); err != nil {
		t.Fatal(err)
	}
	if late := s.Late(); len(late) > 0 {
		t.Errorf("late although settled: %+v", late)
	}
}

// TestStartRepeatsWhatIsClaimed: a process that died between a claim and its tick
// leaves a claim that would hold the scope until it is overdue.
func TestStartRepeatsWhatIsClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	dead := w.service(t, only(turn))
	const scopes = maxSweepTicks + 10
	lost := make(map[scope.Scope]events.TickIssued)
	for i := range scopes {
		dead.cfg.Slots, dead.slots.most = scopes, scopes
		out, err := dead.wake(t.Context(), w.say(user("p", fmt.Sprint(i)), 1))
		for _, tick := range ticksOf(t, out, err) {
			lost[tick.Scope] = tick
		}
	}
	w.pass(time.Second)
	s := w.service(t, only(turn))
	out, err := s.wake(t.Context(), w.say(alice, 1)) // is its own, and not lost
	own := len(ticksOf(t, out, err))
	for range 2 {
		out, err := s.sweep(t.Context(), w.clock())
		for _, tick := range ticksOf(t, out, err) {
			if diff := cmp.Diff(lost[tick.Scope], tick); diff != "" {
				t.Fatalf("another tick, or twice (-lost +again):\n%s", diff)
			}
			delete(lost, tick.Scope)
		}
	}
	out, err = s.sweep(t.Context(), w.clock())
	if n := len(ticksOf(t, out, err)); len(lost) != 0 || n != 0 || own != 0 {
		t.Errorf("%d are not issued again, %d by the sweep after, %d at once", len(lost), n, own)
	}
}

// TestSweepRepeatsWhatIsNoLongerDue: a tick whose reason went away still has to
// be finished, or its slot is never free.
func TestSweepRepeatsWhatIsNoLongerDue(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(memory.Rule{ID: "sleep", Cadence: memory.Cadence{SessionEnd: true}, Enabled: true}))
	one := session(alice, "one")
	in := w.say(one, 2)
	w.end(one, 0)
	out, err := s.wake(t.Context(), in)
	if n := len(ticksOf(t, out, err)); n != 1 {
		t.Fatalf("%d ticks, want 1", n)
	}
	w.ends[alice] = nil
	w.pass(time.Minute)
	out, err = s.sweep(t.Context(), w.clock())
	if again := ticksOf(t, out, err); len(again) != 1 || again[0].Attempt != 1 {
		t.Errorf("%+v, want a second attempt", again)
	}
}

func TestSweepTakesProjectsInTurns(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{turn}, Slots: 5})
	for i := range 50 {
		w.say(user("big", fmt.Sprint(i)), 1)
	}
	w.say(user("small", "a"), 1)
	w.say(user("tiny", "a"), 1)
	out, err := s.sweep(t.Context(), w.clock())
	count := make(map[string]int)
	var order []string
	for _, tick := range ticksOf(t, out, err) {
		count[tick.Scope.Project]++
		order = append(order, tick.Scope.Project)
	}
	if diff := cmp.Diff(map[string]int{"big": 5, "small": 1, "tiny": 1}, count); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"big", "small", "tiny", "big", "big", "big", "big"}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestSweepIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{turn}, Slots: 10_000})
	for i := range maxSweepTicks + 10 {
		w.say(user("p", fmt.Sprint(i)), 1)
	}
	out, err := s.sweep(t.Context(), w.clock())
	if n := len(ticksOf(t, out, err)); n != maxSweepTicks {
		t.Fatalf("%d ticks", n)
	}
	select {
	case <-s.sweepAgain:
	default:
		t.Fatal("the rest waits for the next sweep")
	}
	out, err = s.sweep(t.Context(), w.clock())
	if n := len(ticksOf(t, out, err)); n != 10 {
		t.Errorf("%d ticks, want the remaining 10", n)
	}
}

var nightly = memory.Rule{ID: "nightly", Cadence: memory.Cadence{Cron: "0 3 * * *"}, Enabled: true}

// sweepUntil runs the sweep each minute and returns when which scope got ticks;
// each is consolidated at once.
func sweepUntil(t *testing.T, w *world, s *Service, until time.Time) map[string][]time.Time {
	t.Helper()
	got := make(map[string][]time.Time)
	for ; !w.clock().After(until); w.pass(time.Minute) {
		out, err := s.sweep(t.Context(), w.clock())
		for _, tick := range ticksOf(t, out, err) {
			if tick.Cause != events.CauseCron {
				t.Errorf("cause %s", tick.Cause)
			}
			got[tick.Scope.User] = append(got[tick.Scope.User], w.clock())
			w.apply(tick, false)
		}
	}
	return got
}

func TestCronServesEachScopeOnceWithinItsJitter(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(nightly))
	for i := range 40 {
		w.say(user("p", fmt.Sprint(i)), 1)
	}
	fire := time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)
	got := sweepUntil(t, w, s, fire.Add(9*time.Hour))
	minutes := make(map[time.Time]bool)
	for name, at := range got {
		if len(at) != 1 || at[0].Before(fire) || at[0].After(fire.Add(11*time.Minute)) {
			t.Errorf("%s: ticks at %v", name, at)
		}
		minutes[at[0]] = true
	}
	if len(got) != 40 || len(minutes) < 5 {
		t.Errorf("%d scopes in %d different minutes", len(got), len(minutes))
	}
	if !w.fires["nightly"].Equal(fire) {
		t.Errorf("last fire %s, want %s", w.fires["nightly"], fire)
	}
}

func TestCronLeavesWhatCameAfterTheFire(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(nightly))
	fire := time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC)
	w.say(user("p", "early"), 1)
	w.now = fire.Add(time.Second)
	w.say(user("p", "late"), 1)
	got := sweepUntil(t, w, s, fire.Add(12*time.Hour))
	if len(got["early"]) != 1 || len(got["late"]) != 0 {
		t.Errorf("%v", got)
	}
	got = sweepUntil(t, w, s, fire.Add(25*time.Hour))
	if len(got["late"]) != 1 {
		t.Errorf("the next night: %v", got)
	}
}

func TestCronMissedWhileDownIsMadeUpOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.say(alice, 450)
	w.pass(5 * 24 * time.Hour)
	s := w.service(t, only(nightly))
	start := w.clock()
	got := sweepUntil(t, w, s, start.Add(time.Hour))
	if n := len(got["alice"]); n != 3 {
		t.Errorf("%d ticks, want 450 episodes in 3", n)
	}
	w.say(alice, 1)
	got = sweepUntil(t, w, w.service(t, only(nightly)), w.clock().Add(time.Hour))
	if len(got) != 0 {
		t.Errorf("made up again: %v", got)
	}
}

func TestSweepPassesOverADamagedScope(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	for i := range 5 {
		w.say(user("p", fmt.Sprint(i)), 1)
	}
	w.damaged = user("p", "1")
	out, err := s.sweep(t.Context(), w.clock())
	if n := len(ticksOf(t, out, err)); n != 4 {
		t.Errorf("%d ticks, want 4", n)
	}
}

func TestFrequentCronIsNotStarvedByItsJitter(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(memory.Rule{ID: "often", Cadence: memory.Cadence{Cron: "*/5 * * * *"}, Enabled: true}))
	for i := range 20 {
		w.say(user("p", fmt.Sprint(i)), 1)
	}
	w.pass(time.Minute)
	if got := sweepUntil(t, w, s, noon.Add(9*time.Minute)); len(got) != 20 {
		t.Errorf("%d scopes of 20 served", len(got))
	}
}

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
