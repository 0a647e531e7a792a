package scheduler

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func maintaining(t *testing.T, w *world) *Service {
	t.Helper()
	return w.service(t, Config{Rules: []memory.Rule{{
		ID: memory.RuleMaintenance, Cadence: memory.Cadence{Cron: "0 3 * * *"}, Steps: []string{events.StepPrune}, Enabled: true,
	}}})
}

func maintained(t *testing.T, s *Service, w *world) []events.TickIssued {
	t.Helper()
	out, err := s.maintain(t.Context(), w.clock())
	if err != nil {
		t.Fatal(err)
	}
	ticks := make([]events.TickIssued, len(out))
	for i, p := range out {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		ticks[i] = p.(events.TickIssued) //nolint:forcetypeassert // a panic fails the test
	}
	return ticks
}

// prune takes the facts of a tick out of the world: they were pruned.
func (w *world) prune(tick events.TickIssued) {
	w.mu.Lock()
	defer w.mu.Unlock()
	pruned := map[string]bool{}
	for _, id := range tick.Upkeep.FactIDs {
		pruned[tick.Scope.String()+id] = true
	}
	var rest []decayed
	for _, d := range w.decayed {
		if !pruned[d.Scope.String()+d.ID] {
			rest = append(rest, d)
		}
	}
	w.decayed = rest
}

func gone(s scope.Scope, n int, at time.Time) decayed {
	return decayed{store.Decayed{Scope: s, Incarnation: 2, ID: fmt.Sprintf("f%d", n)}, at}
}

func TestMaintenanceFollowsItsCron(t *testing.T) {
	t.Parallel()
	w := newWorld() // noon: the fire of 03:00 was missed
	bob := user("q", "bob")
	w.decayed = []decayed{gone(alice, 1, noon.Add(-24*time.Hour)), gone(alice, 2, noon.Add(-12*time.Hour)), gone(bob, 1, noon.Add(-10*time.Hour)), gone(bob, 2, noon.Add(-time.Hour))}
	s := maintaining(t, w)
	ticks := maintained(t, s, w)
	if len(ticks) != 2 || ticks[0].Scope != alice || len(ticks[0].Upkeep.FactIDs) != 2 || ticks[1].Scope != bob || len(ticks[1].Upkeep.FactIDs) != 1 {
		t.Fatalf("ticks %+v", ticks)
	}
	if tick := ticks[0]; tick.Rule != "maintenance" || tick.Cause != events.CauseMaintenance || tick.Incarnation != 2 || !tick.Range.Empty() || !tick.Upkeep.At.Equal(noon) {
		t.Errorf("tick %+v", tick)
	}
	if more := maintained(t, s, w); len(more) > 0 {
		t.Errorf("ticks while they are under way: %+v", more)
	}
	w.prune(ticks[0])
	w.pass(announcedFor)
	again := maintained(t, s, w)
	if len(again) != 1 || again[0].Scope != bob {
		t.Errorf("what was not done is not asked for again: %+v", again)
	}
	w.prune(again[0])
	if more := maintained(t, s, w); len(more) > 0 || !w.fires["maintenance"].Equal(time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)) {
		t.Errorf("after all is done: %+v, served %v", more, w.fires)
	}
	w.pass(time.Hour)
	if more := maintained(t, s, w); len(more) > 0 {
		t.Errorf("before the next fire: %+v", more)
	}
	w.pass(24 * time.Hour)
	if more := maintained(t, s, w); len(more) != 1 || more[0].Upkeep.FactIDs[0] != "f2" {
		t.Errorf("after the next fire: %+v", more)
	}
}

// A run is bounded, and a process that starts goes on where another one stopped.
func TestMaintenanceIsBoundedAndResumed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	const all = 2*maxUpkeep + 300
	for n := range all {
		w.decayed = append(w.decayed, gone(alice, n, noon.Add(-24*time.Hour)))
	}
	pruned := 0
	for range 3 {
		s := maintaining(t, w)
		facts := 0
		for _, tick := range maintained(t, s, w) {
			facts += len(tick.Upkeep.FactIDs)
			w.prune(tick)
		}
		if facts > maxUpkeep {
			t.Errorf("%d facts in one run", facts)
		}
		pruned += facts
	}
	if pruned != all || len(w.decayed) != 0 {
		t.Errorf("%d of %d pruned", pruned, all)
	}
}

// Entities are summarised in ticks of the rule's class, of which each is one call, and
// those that are mentioned after the fire at the next one.
func TestMaintenanceEnriches(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for n := range events.MaxUpkeepEntities + 1 {
		w.undescribed = append(w.undescribed, gone(alice, n, noon.Add(-24*time.Hour)))
	}
	w.undescribed = append(w.undescribed, gone(alice, 99, noon.Add(-time.Hour)))
	w.decayed = []decayed{gone(alice, 1, noon.Add(-24*time.Hour))}
	s := w.service(t, Config{Rules: []memory.Rule{{
		ID: memory.RuleMaintenance, Cadence: memory.Cadence{Cron: "0 3 * * *"}, Class: events.ClassModel,
		Steps: []string{events.StepPrune, events.StepEnrich}, Enabled: true,
	}}})
	var got []string
	for _, tick := range maintained(t, s, w) {
		got = append(got, fmt.Sprintf("%s %s %d", tick.Upkeep.Step, tick.Class, len(tick.Upkeep.FactIDs)))
	}
	if diff := cmp.Diff([]string{"prune  1", fmt.Sprintf("enrich model %d", events.MaxUpkeepEntities), "enrich model 1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.undescribed, w.decayed = w.undescribed[events.MaxUpkeepEntities+1:], nil
	if more := maintained(t, s, w); len(more) > 0 || w.fires["maintenance"].IsZero() {
		t.Errorf("after all is done: %+v, served %v", more, w.fires)
	}
}

// Facts that never settle do not keep those of others from being pruned.
func TestMaintenancePassesFactsThatNeverSettle(t *testing.T) {
	t.Parallel()
	w := newWorld()
	const stuck, all = 3*maxUpkeep + 10, 2*maxUpkeep + 5
	bob := user("q", "bob")
	for n := range stuck {
		w.decayed = append(w.decayed, gone(alice, n, noon.Add(-48*time.Hour)))
	}
	for n := range all {
		w.decayed = append(w.decayed, gone(bob, n, noon.Add(-24*time.Hour)))
	}
	s := maintaining(t, w)
	pruned, again := 0, false
	for minute := range 15 {
		facts := 0
		for _, tick := range maintained(t, s, w) {
			facts += len(tick.Upkeep.FactIDs)
			if tick.Scope == bob {
				pruned += len(tick.Upkeep.FactIDs)
				w.prune(tick)
				continue
			}
			again = again || minute >= 10
		}
		if more := maintained(t, s, w); facts == maxUpkeep && pruned == 0 && len(more) > 0 {
			t.Errorf("more than %d facts are under way", maxUpkeep)
		}
		w.pass(time.Minute)
	}
	if pruned != all || !again {
		t.Errorf("%d of %d pruned behind facts that never settle; those were tried again: %t", pruned, all, again)
	}
}

// A commit of a maintenance rule asks for the next run at once.
func TestMaintenanceGoesOnAfterACommit(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := maintaining(t, w)
	c := events.Event[commit]{Meta: events.Meta{ID: "c", Arrived: noon}, Data: commit{Header: events.Header{Scope: alice}, Revision: 1, Rule: "maintenance"}}
	if out, err := s.committed(t.Context(), c); err != nil || len(out) > 0 {
		t.Fatal(out, err)
	}
	select {
	case <-s.pruned:
	default:
		t.Error("no next run")
	}
}

func TestMaintenanceTellsErrors(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.err = errors.New("locked")
	if _, err := maintaining(t, w).maintain(t.Context(), noon); err == nil {
		t.Error("the store's error is hidden")
	}
}
