package scheduler

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// Ticks of a rule that never arrive must leave the other rules room.
func TestStuckRuleLeavesRoom(t *testing.T) {
	t.Parallel()
	slow := memory.Rule{ID: "slow", Class: events.ClassModel, Cadence: memory.Cadence{Every: 1}, Enabled: true}
	quick := memory.Rule{ID: "quick", Cadence: memory.Cadence{Every: 1}, Enabled: true}
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{slow, quick}, Slots: 8})
	issued := map[string]int{}
	for n := range 40 {
		out, err := s.wake(t.Context(), w.say(user("p", fmt.Sprint(n)), 1))
		for _, tick := range ticksOf(t, out, err) {
			issued[tick.Rule]++
			if (tick.Class == events.ClassModel) != (tick.Rule == slow.ID) {
				t.Errorf("a tick of rule %s is of class %q", tick.Rule, tick.Class)
			}
			if tick.Rule == quick.ID { // slow's are stuck
				if c, ok := w.apply(tick, false); ok {
					if _, err := s.committed(t.Context(), c); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if issued[quick.ID] != 40 || issued[slow.ID] != 6 {
		t.Errorf("issued %v, want 40 quick ones and 6 slow ones, 2 slots being kept for the quick", issued)
	}
}

// No process works on the claims of a rule that was removed from the
// configuration, so they must not take slots from the others.
func TestRemovedRuleTakesNoSlots(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for n := range 8 {
		fact := user("p", fmt.Sprint("old ", n))
		w.say(fact, 1)
		w.claims[claimKey{fact, "removed"}] = store.Claim{Range: events.Range{From: 0, To: 1}, At: noon.Add(-time.Hour)}
	}
	s := w.service(t, Config{Rules: []memory.Rule{turn}, Slots: 8})
	for n := range 8 {
		out, err := s.wake(t.Context(), w.say(user("p", fmt.Sprint(n)), 1))
		if got := len(ticksOf(t, out, err)); got != 1 {
			t.Fatalf("%d ticks for scope %d of 8", got, n)
		}
	}
}

// TestErasedScopesGiveBackTheirSlots: the tick of an erased user is never committed.
func TestErasedScopesGiveBackTheirSlots(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{turn}, Slots: 1})
	out, err := s.wake(t.Context(), w.say(alice, 1))
	if n := len(ticksOf(t, out, err)); n != 1 {
		t.Fatalf("%d ticks", n)
	}
	delete(w.states, alice)
	delete(w.claims, claimKey{alice, turn.ID})
	out, err = s.wake(t.Context(), w.say(user("p", "bob"), 1))
	if n := len(ticksOf(t, out, err)); n != 1 {
		t.Errorf("%d ticks after the user of the only one was erased", n)
	}
}

// TestP7UnpublishedTickOfAnotherComesAgain: the commit of one scope gives its
// slot to another, whose tick cannot be published. The commit comes again, and
// with it the tick, under the same id; no third scope is served for it.
func TestP7UnpublishedTickOfAnotherComesAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{turn}, Slots: 1})
	var first []events.TickIssued
	for _, name := range []string{"a", "b", "c"} {
		out, err := s.wake(t.Context(), w.say(user("p", name), 1))
		first = append(first, ticksOf(t, out, err)...)
	}
	c, _ := w.apply(first[0], false)
	c.ID = "commit"
	for c.Delivery = 1; c.Delivery < 4; c.Delivery++ {
		out, err := s.committed(t.Context(), c)
		if got := ticksOf(t, out, err); len(got) != 1 || got[0].Scope != user("p", "b") || got[0].Attempt != 0 {
			t.Errorf("attempt %d: %+v", c.Delivery, got)
		}
		w.pass(time.Second)
	}
}

// TestReissuedTickKeepsItsSlot: a tick that is issued again, however often and
// by whichever process, occupies the one slot of its claim until its range is
// committed.
func TestReissuedTickKeepsItsSlot(t *testing.T) {
	t.Parallel()
	const slots = 8
	w := newWorld()
	cfg := Config{Rules: []memory.Rule{turn}, Slots: slots}
	s := w.service(t, cfg)
	newest := map[string]events.TickIssued{} // by scope
	note := func(out []events.Payload, err error) (n int) {
		t.Helper()
		for _, tick := range ticksOf(t, out, err) {
			newest[tick.Scope.User] = tick
			n++
		}
		return n
	}
	for n := range 3 * slots {
		note(s.wake(t.Context(), w.say(user("p", fmt.Sprint(n)), 1)))
	}
	for attempt := range 4 {
		if attempt == 2 {
			s = w.service(t, cfg) // another replica
		}
		w.pass(time.Hour)
		if n := note(s.sweep(t.Context(), w.clock())); n != slots {
			t.Fatalf("sweep %d issued %d ticks, want the %d that are overdue", attempt, n, slots)
		}
		if n := w.underWay("p"); n != slots || len(newest) != slots {
			t.Fatalf("sweep %d: %d claims under way in %d scopes, want %d", attempt, n, len(newest), slots)
		}
	}
	for _, tick := range newest {
		c, ok := w.apply(tick, false)
		if !ok {
			t.Fatalf("%+v was not applied", tick)
		}
		if n := note(s.committed(t.Context(), c)); n != 1 {
			t.Errorf("%d ticks for the slot of one that was committed after %d attempts", n, tick.Attempt)
		}
		break
	}
	if n := w.underWay("p"); n != slots {
		t.Errorf("%d claims under way, want %d", n, slots)
	}
}
