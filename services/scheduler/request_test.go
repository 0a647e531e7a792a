package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/pkg/events"
)

// ask lets an episode ask for a tick of its own.
func (w *world) ask(ordinal uint64, prompt string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &w.episodes[alice][ordinal-1]
	e.Request, e.Prompt = true, prompt
}

// turns issues ticks of the rule turn one after the other until none is due.
func turns(t *testing.T, w *world, s *Service) (all []events.TickIssued) {
	t.Helper()
	for {
		out, err := s.wake(t.Context(), stored(alice, 0))
		var next []events.TickIssued
		for _, tick := range ticksOf(t, out, err) {
			if tick.Rule == memory.RuleTurn {
				next = append(next, tick)
			}
		}
		if len(next) == 0 {
			return all
		}
		for _, tick := range next {
			all = append(all, tick)
			w.apply(tick, false)
			w.pass(time.Second) // so that the store's claims are counted again
		}
	}
}

// Episodes that ask for a tick of their own get one in their turn: those before them
// are read before, those after them after.
func TestP3RequestsAreReadInTheirTurn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	list := rules.Shipped()
	for i := range list {
		if list[i].ID == memory.RuleAdd {
			list[i].Class = events.ClassModel
		}
	}
	s := w.service(t, Config{Rules: list})
	w.say(alice, 7)
	w.ask(3, "birds")
	w.ask(4, "birds")
	w.ask(5, "")
	w.ask(7, "fish")
	type issued struct {
		r      events.Range
		as     string
		class  events.Class
		cause  events.Cause
		prompt string
	}
	var got []issued
	for _, tick := range turns(t, w, s) {
		got = append(got, issued{tick.Range, tick.As, tick.Class, tick.Cause, tick.Prompt})
	}
	want := []issued{
		{events.Range{From: 0, To: 2}, "", "", events.CauseEvery, ""},
		{events.Range{From: 2, To: 4}, "add", events.ClassModel, events.CauseRequest, "birds"},
		{events.Range{From: 4, To: 5}, "add", events.ClassModel, events.CauseRequest, ""},
		{events.Range{From: 5, To: 6}, "", "", events.CauseEvery, ""},
		{events.Range{From: 6, To: 7}, "add", events.ClassModel, events.CauseRequest, "fish"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(issued{})); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
}

// The ticks of any requests cover every episode once, in order, and each
// covers only episodes that ask for the same.
func TestNoRequestNoRead(t *testing.T) {
	t.Parallel()
	w := newWorld()
	list := rules.Shipped()
	for i := range list {
		list[i].Enabled = list[i].ID == memory.RuleTurn || list[i].ID == memory.RuleAdd // no cron, which reads
	}
	s := w.service(t, Config{Rules: list})
	w.say(alice, 2)
	w.ask(1, "")
	turns(t, w, s)
	w.say(alice, 1)
	w.ranges = 0
	if got := len(turns(t, w, s)); got != 1 || w.ranges != 0 {
		t.Errorf("%d ticks after %d reads of episodes, want 1 after none", got, w.ranges)
	}
}

func TestRequestLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld()
		s := w.service(t, Config{})
		n := rapid.IntRange(1, 60).Draw(rt, "episodes")
		w.say(alice, n)
		for ordinal := range n {
			if prompt := rapid.SampledFrom([]string{"-", "-", "", "a", "b"}).Draw(rt, "prompt"); prompt != "-" {
				w.ask(uint64(ordinal+1), prompt)
			}
		}
		at := uint64(0)
		for _, tick := range turns(t, w, s) {
			if tick.Range.From != at || tick.Range.Empty() {
				rt.Fatalf("a tick over %v at %d", tick.Range, at)
			}
			for at < tick.Range.To {
				of := w.episodes[alice][at].Asked()
				if at++; of.Request != (tick.As == memory.RuleAdd) || of.Prompt != tick.Prompt {
					rt.Fatalf("episode %d asks for %+v, its tick is %+v", at, of, tick)
				}
			}
		}
		if at != uint64(n) {
			rt.Fatalf("%d of %d episodes are read", at, n)
		}
	})
}

// Without a rule of requests they are read like all others.
func TestRequestsWithoutTheirRule(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{{ID: memory.RuleTurn, Cadence: memory.Cadence{Every: 1}, Enabled: true}}})
	w.say(alice, 3)
	w.ask(2, "birds")
	if all := turns(t, w, s); len(all) != 1 || all[0].As != "" || all[0].Range.To != 3 {
		t.Errorf("ticks %+v", all)
	}
}

// While a model is down, requests leave slots for the other scopes of their project;
// a commit makes room for the next.
func TestP7RequestsLeaveSlotsForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld()
	list := rules.Shipped()
	for i := range list {
		if list[i].ID == memory.RuleAdd {
			list[i].Class = events.ClassModel
		}
	}
	s := w.service(t, Config{Rules: list, Slots: 8})
	issue := func(name string, request bool) *events.TickIssued {
		t.Helper()
		who := user("p", name)
		announced := w.say(who, 1)
		w.mu.Lock()
		w.episodes[who][0].Request = request
		w.mu.Unlock()
		out, err := s.wake(t.Context(), announced)
		for _, tick := range ticksOf(t, out, err) {
			if tick.Rule == memory.RuleTurn && tick.Scope == who {
				return &tick
			}
		}
		return nil
	}
	var stuck []events.TickIssued
	for n := range 12 {
		if tick := issue(fmt.Sprintf("asks%d", n), true); tick != nil {
			stuck = append(stuck, *tick)
		}
	}
	if len(stuck) != 4 {
		t.Fatalf("%d requests are under way, want half of the slots", len(stuck))
	}
	if tick := issue("says", false); tick == nil || tick.As != "" {
		t.Fatalf("a scope without a request gets %+v", tick)
	}
	// One commit is seen here, another one by another process.
	c, _ := w.apply(stuck[0], false)
	if _, err := s.committed(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.sweepAgain:
	default:
		t.Error("a commit makes room, and the next sweep is a minute away")
	}
	w.apply(stuck[1], false)
	w.pass(time.Second)
	out, err := s.sweep(t.Context(), w.clock())
	more := 0
	for _, tick := range ticksOf(t, out, err) {
		if tick.As == memory.RuleAdd && !slices.ContainsFunc(stuck, func(old events.TickIssued) bool { return old.Scope == tick.Scope }) {
			more++
		}
	}
	if more != 2 {
		t.Errorf("%d further requests after two are done", more)
	}
}
