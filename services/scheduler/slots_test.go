package scheduler

import (
	"fmt"
	"testing"

	"palimpsest/internal/memory"
)

// Ticks of a rule that never arrive must leave the other rules room.
func TestStuckRuleLeavesRoom(t *testing.T) {
	t.Parallel()
	slow := memory.Rule{ID: "slow", Cadence: memory.Cadence{Every: 1}, Enabled: true}
	quick := memory.Rule{ID: "quick", Cadence: memory.Cadence{Every: 1}, Enabled: true}
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{slow, quick}, Slots: 8})
	issued := map[string]int{}
	for n := range 40 {
		out, err := s.wake(t.Context(), w.say(user("p", fmt.Sprint(n)), 1))
		for _, tick := range ticksOf(t, out, err) {
			issued[tick.Rule]++
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
