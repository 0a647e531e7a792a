package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestP1AcknowledgedIsDurable kills the program many times under load: each
// acknowledged message is stored once, and the facts at the end equal those of an
// undisturbed run.
func TestP1AcknowledgedIsDurable(t *testing.T) {
	t.Parallel()
	const users, turns = 3, 48
	disturbed, calm := scripts(users, turns), scripts(users, turns)

	i := start(t, t.TempDir())
	for _, after := range []int{3, 37, 17, 29} {
		i.tellAll(disturbed, after, i.kill)
		i.begin()
	}
	i.tellAll(disturbed, 0, nil)
	i.settled(everything("default"), users*turns)
	i.restart()

	quiet := start(t, t.TempDir())
	quiet.tellAll(calm, 0, nil)
	quiet.settled(everything("default"), users*turns)

	for _, s := range disturbed {
		wantSaid(t, i.instance, s)
	}
	if diff := cmp.Diff(quiet.export(everything("default"), true), i.export(everything("default"), true)); diff != "" {
		t.Errorf("what is known (-undisturbed +killed):\n%s", diff)
	}
	if letters := i.buried(0); len(letters) > 0 {
		t.Errorf("dead letters: %+v", letters)
	}
	wantReplayed(t, i.instance, everything("default"))
}

// TestStopDrains stops the program under load: it exits with 0, and all
// acknowledged messages are there after the next start.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	i := start(t, t.TempDir())
	all := scripts(3, 40)
	var err error
	i.tellAll(all, 30, func() { err = i.terminate() })
	if err != nil {
		t.Fatalf("exit: %v\n%s", err, i.stderr)
	}
	i.begin()
	i.tellAll(all, 0, nil)
	for _, s := range all {
		i.settled(of(s.who), len(s.turns))
		if got := i.recent(of(s.who)); len(got) != len(s.turns) {
			t.Errorf("%s: %d of %d", s.who.User, len(got), len(s.turns))
		}
	}
}
