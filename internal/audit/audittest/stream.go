package audittest

import (
	"context"
	"errors"
	"testing"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/pkg/scope"
)

// Recorded is a stream that effects can be appended to.
type Recorded interface {
	audit.Appender
	audit.Stream
}

// RunStream checks the contract of [audit.Stream]. Every call of open must
// return a stream that is empty and independent of the others.
func RunStream(t *testing.T, open func(t *testing.T) Recorded) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Recorded)
	}{
		{"follows from nothing", streamFollowsFromNothing},
		{"follows behind a sequence", streamFollowsBehind},
		{"follows one scope among many", streamFollowsScope},
		{"knows since when", streamSince},
		{"refuses what is no selector", streamRefuses},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

// followed is a Follow that runs beside the test.
type followed struct {
	t    *testing.T
	got  chan uint64
	end  chan error
	stop context.CancelFunc
}

func follow(t *testing.T, s audit.Stream, sel scope.Selector, after uint64) *followed {
	t.Helper()
	ctx, cancel := context.WithCancel(journalDeadline(t))
	f := &followed{t: t, got: make(chan uint64), end: make(chan error, 1), stop: cancel}
	go func() {
		for e, err := range s.Follow(ctx, sel, after) {
			if err != nil {
				f.end <- err
				return
			}
			select {
			case f.got <- e.Sequence:
			case <-ctx.Done():
			}
		}
		f.end <- nil
	}()
	t.Cleanup(cancel)
	return f
}

func (f *followed) expect(sequences ...uint64) {
	f.t.Helper()
	for _, want := range sequences {
		select {
		case got := <-f.got:
			if got != want {
				f.t.Fatalf("followed to %d, want %d", got, want)
			}
		case err := <-f.end:
			f.t.Fatalf("ended before %d: %v", want, err)
		}
	}
}

// ends stops the follower, which must say why it ended, with nothing more.
func (f *followed) ends() {
	f.t.Helper()
	f.stop()
	select {
	case got := <-f.got:
		f.t.Errorf("followed to %d, want no more", got)
	case err := <-f.end:
		if !errors.Is(err, context.Canceled) {
			f.t.Errorf("ended with %v, want that it was cancelled", err)
		}
	}
}

func streamFollowsFromNothing(t *testing.T, s Recorded) {
	alice := logScope("alice")
	f := follow(t, s, scope.Selector{Project: "default"}, 0)
	var after uint64
	for revision := uint64(1); revision <= 20; revision++ {
		after = journalAppend(t, s, alice, revision, "a", after)
		f.expect(after)
	}
	f.ends()
}

func streamFollowsBehind(t *testing.T, s Recorded) {
	alice := logScope("alice")
	appended := journalFill(t, s, alice, 40)
	f := follow(t, s, scope.Exactly(alice), appended[9])
	f.expect(appended[10:]...)
	f.expect(journalAppend(t, s, alice, 41, "a", appended[39]))
	f.ends()
	for e, err := range s.Follow(journalDeadline(t), scope.Exactly(alice), 0) {
		if err != nil || e.Sequence != appended[0] {
			t.Errorf("sequence %d, %v", e.Sequence, err)
		}
		break // a reader may leave
	}
}

func streamFollowsScope(t *testing.T, s Recorded) {
	alice, bob := logScope("alice"), logScope("bob")
	f := follow(t, s, scope.Exactly(bob), 0)
	var a, b uint64
	for revision := uint64(1); revision <= 10; revision++ {
		a = journalAppend(t, s, alice, revision, "a", a)
		b = journalAppend(t, s, bob, revision, "a", b)
		f.expect(b)
	}
	f.ends()
}

func streamSince(t *testing.T, s Recorded) {
	ctx := journalDeadline(t)
	if after, err := s.Since(ctx, time.Unix(0, 0)); err != nil || after != 0 {
		t.Errorf("since ever, of nothing: %d, %v", after, err)
	}
	journalFill(t, s, logScope("alice"), 30)
	var arrived []time.Time
	var sequences []uint64
	for e, err := range s.Read(ctx, scope.Selector{Project: "default"}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		arrived, sequences = append(arrived, e.Arrived), append(sequences, e.Sequence)
	}
	if len(arrived) != 30 {
		t.Fatalf("%d effects, want 30", len(arrived))
	}
	for i, at := range arrived {
		want := sequences[i] - 1
		for j := i; j > 0 && !arrived[j-1].Before(at); j-- {
			want = sequences[j-1] - 1
		}
		if after, err := s.Since(ctx, at); err != nil || after != want {
			t.Errorf("since the arrival of %d: %d, %v; want %d", sequences[i], after, err, want)
		}
	}
	for at, want := range map[time.Time]uint64{arrived[0].Add(-time.Hour): sequences[0] - 1, arrived[29].Add(time.Hour): sequences[29]} {
		if after, err := s.Since(ctx, at); err != nil || after != want {
			t.Errorf("since %s: %d, %v; want %d", at, after, err, want)
		}
	}
}

func streamRefuses(t *testing.T, s Recorded) {
	for _, err := range s.Follow(journalDeadline(t), scope.Selector{}, 0) {
		if err == nil {
			t.Error("a selector without a project follows something")
		}
	}
}
