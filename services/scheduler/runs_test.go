package scheduler

import (
	"fmt"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// A flood of runs of one project takes its slots, in the order of the calls, and
// delays no other project.
func TestRunsTakeSlots(t *testing.T) {
	t.Parallel()
	const slots = 4
	sleep := memory.Rule{ID: "sleep", Cadence: memory.Cadence{Every: 100}, Enabled: true}
	off := memory.Rule{ID: "off", Cadence: memory.Cadence{Every: 1}}
	for _, test := range []struct {
		memory.Rule
		room int // a rule that is on has a share of its own
	}{{sleep, slots}, {off, slots / 2}} {
		r := test.Rule
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			s := w.service(t, Config{Rules: []memory.Rule{sleep, off}, Slots: slots})
			call := func(project, name string) []events.TickIssued {
				said := w.say(user(project, name), 3)
				out, err := s.wake(t.Context(), said)
				if early := ticksOf(t, out, err); len(early) > 0 {
					t.Fatalf("%+v was not asked for", early)
				}
				said.Data.Run, said.Data.LastOrdinal = r.ID, 2
				out, err = s.wake(t.Context(), said)
				return ticksOf(t, out, err)
			}
			var open []events.TickIssued
			for n := range 5 * slots {
				open = append(open, call("flood", fmt.Sprint(n))...)
			}
			if len(open) != test.room {
				t.Fatalf("%d ticks for %d slots", len(open), test.room)
			}
			if quiet := call("quiet", "ann"); len(quiet) != 1 {
				t.Errorf("another project has %d ticks, want 1", len(quiet))
			}
			for n := 0; n < len(open); n++ {
				tick := open[n]
				if tick.Scope.User != fmt.Sprint(n) || tick.Rule != r.ID || tick.Cause != events.CauseRequest || tick.Range != (events.Range{To: 2}) {
					t.Errorf("tick %d is %+v", n, tick)
				}
				c, ok := w.apply(tick, false)
				if !ok {
					t.Fatalf("tick %d was not applied", n)
				}
				c.ID = fmt.Sprint("commit", n)
				out, err := s.committed(t.Context(), c)
				open = append(open, ticksOf(t, out, err)...)
			}
			if len(open) != 5*slots {
				t.Errorf("%d ticks for %d runs", len(open), 5*slots)
			}
		})
	}
}

// A run reads what was pending when it was asked for, once, however often that
// message comes.
func TestRunIsServedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{{ID: "sleep", Cadence: memory.Cadence{Every: 100}, Enabled: true}}})
	wanted := w.say(alice, 3)
	wanted.Data.Run = "sleep"
	out, err := s.wake(t.Context(), wanted)
	ticks := ticksOf(t, out, err)
	if len(ticks) != 1 || ticks[0].Range != (events.Range{To: 3}) {
		t.Fatalf("ticks %+v", ticks)
	}
	if _, ok := w.apply(ticks[0], false); !ok {
		t.Fatal("the tick was not applied")
	}
	later := w.say(alice, 2)
	for _, in := range []events.Event[events.EpisodeStored]{wanted, later} {
		out, err := s.wake(t.Context(), in)
		if again := ticksOf(t, out, err); len(again) > 0 {
			t.Errorf("%+v follows", again)
		}
	}
	if len(s.runs.to) > 0 {
		t.Errorf("%v is still wanted", s.runs.to)
	}
	// The user was erased, and the scope begins anew: the run is of an earlier one.
	wanted.Data.LastOrdinal = 5
	s.runs.ask(wanted.Data)
	state := w.states[alice]
	state.Incarnation++
	w.states[alice] = state
	out, err = s.wake(t.Context(), later)
	if again := ticksOf(t, out, err); len(again) > 0 {
		t.Errorf("%+v follows for another incarnation", again)
	}
}
