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
	if n := len(ticksOf(t, out, err)); len(lost) != 0 || n != 0 || own != 1 {
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
