package scheduler

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

func TestDueHoldsAreReleased(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.holds = []store.DueHold{
		{Scope: alice, Incarnation: 2, ID: "h1", Due: noon.Add(time.Hour)},
		{Scope: user("q", "bob"), ID: "h1", Due: noon.Add(2 * time.Hour)},
	}
	s := w.service(t, Config{})
	sweep := func() []events.CommandRequested {
		t.Helper()
		out, err := s.holds(t.Context(), w.clock())
		if err != nil {
			t.Fatal(err)
		}
		commands := make([]events.CommandRequested, len(out))
		for i, p := range out {
			if err := p.Validate(); err != nil {
				t.Error(err)
			}
			commands[i] = p.(events.CommandRequested) //nolint:forcetypeassert // a panic fails the test
		}
		return commands
	}
	if n := len(sweep()); n != 0 {
		t.Fatalf("%d releases before anything is due", n)
	}
	w.pass(time.Hour)
	first := sweep()
	want := events.CommandRequested{
		Header:     events.Header{Scope: alice, Incarnation: 2},
		CommandRef: events.CommandRef{RequestID: first[0].RequestID, Op: events.OpReleaseDue},
		Actor:      "palimpsest:scheduler", HoldID: "h1", At: w.clock(),
	}
	if diff := cmp.Diff([]events.CommandRequested{want}, first); diff != "" || want.RequestID == "" {
		t.Fatalf("due (-want +got):\n%s", diff)
	}
	w.pass(time.Minute)
	if n := len(sweep()); n != 0 {
		t.Errorf("%d releases while one is under way", n)
	}
	w.pass(announcedFor)
	again := sweep()
	if len(again) != 1 || again[0].RequestID == want.RequestID {
		t.Errorf("what was not released is not asked for anew: %+v", again)
	}
	w.pass(time.Hour)
	w.holds[0].Due = w.clock() // held again
	if n := len(sweep()); n != 2 {
		t.Errorf("%d releases, want the one held again and the other project's", n)
	}
	w.err = errors.New("locked")
	if _, err := s.holds(t.Context(), w.clock()); err == nil {
		t.Error("holds hides the store's error")
	}
}

func TestReleasesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for i := range maxReleases + 5 {
		w.holds = append(w.holds, store.DueHold{Scope: alice, ID: events.HashID("h", string(rune(i))), Due: noon})
	}
	s := w.service(t, Config{})
	for _, want := range []int{maxReleases, 5, 0} {
		if out, err := s.holds(t.Context(), noon); err != nil || len(out) != want {
			t.Errorf("%d releases, %v, want %d", len(out), err, want)
		}
	}
}
