package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

func TestSwitched(t *testing.T) {
	t.Parallel()
	// open is a live session, its first and last episode minutes after noon.
	open := func(name string, first, last int) memory.Session {
		return memory.Session{
			Scope: session(alice, name), Live: true, LastOrdinal: uint64(last),
			FirstSeen: noon.Add(time.Duration(first) * time.Minute), LastSeen: noon.Add(time.Duration(last) * time.Minute),
		}
	}
	backfilled := func(s memory.Session) memory.Session { s.Live = false; return s }
	tests := map[string]struct {
		open []memory.Session
		want []string
	}{
		"none":                        {nil, nil},
		"alone":                       {[]memory.Session{open("a", 0, 5)}, nil},
		"silent for long":             {[]memory.Session{open("a", 0, 5), open("b", 20, 20)}, []string{"a"}},
		"silent for exactly 2 min":    {[]memory.Session{open("a", 0, 5), open("b", 7, 9)}, []string{"a"}},
		"spoke a minute ago":          {[]memory.Session{open("a", 0, 5), open("b", 6, 9)}, nil},
		"spoke again since":           {[]memory.Session{open("a", 0, 21), open("b", 20, 20)}, nil},
		"two devices alternating":     {[]memory.Session{open("a", 0, 30), open("b", 1, 31)}, nil},
		"several":                     {[]memory.Session{open("a", 0, 1), open("b", 2, 3), open("c", 9, 9)}, []string{"a", "b"}},
		"the new one was backfilled":  {[]memory.Session{open("a", 0, 5), backfilled(open("b", 20, 20))}, nil},
		"the old one was backfilled":  {[]memory.Session{backfilled(open("a", 0, 5)), open("b", 20, 20)}, nil},
		"begun in the same instant":   {[]memory.Session{open("a", 0, 0), open("b", 0, 0)}, nil},
		"the third ends, second goes": {[]memory.Session{open("a", 0, 20), open("b", 2, 3), open("c", 9, 9)}, []string{"b"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, end := range switched(tt.open, 2*time.Minute) {
				got = append(got, end.Scope.Session)
				if end.Cause != events.EndSwitched || end.LastOrdinal == 0 {
					t.Errorf("end %+v", end)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ended (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSwitchEndsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{})
	one, two := session(alice, "one"), session(alice, "two")
	w.say(one, 3)
	w.pass(10 * time.Minute)
	in := w.say(two, 1)
	out, err := s.wake(t.Context(), in)
	ends := endsOf(t, out, err)
	want := []events.SessionEnded{{
		Scope: one, Cause: events.EndSwitched, LastOrdinal: 3, Timestamp: events.Timestamp{Time: noon.Add(10 * time.Minute)},
	}}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	out, err = s.wake(t.Context(), in)
	if n := len(endsOf(t, out, err)); n != 0 {
		t.Errorf("%d ends from the same news", n)
	}
	in.Delivery = 2
	out, err = s.wake(t.Context(), in)
	if again := endsOf(t, out, err); len(again) != 1 || !cmp.Equal(again[0].Identity(), ends[0].Identity()) {
		t.Errorf("redelivered: %+v", again)
	}
	// Other replicas say the same under the same id.
	out, err = w.service(t, Config{}).wake(t.Context(), in)
	if other := endsOf(t, out, err); len(other) != 1 || !cmp.Equal(other[0].Identity(), ends[0].Identity()) {
		t.Errorf("another replica: %+v", other)
	}
	w.end(one, 3)
	out, err = w.service(t, Config{}).wake(t.Context(), in)
	if n := len(endsOf(t, out, err)); n != 0 {
		t.Errorf("%d ends of a session that has ended", n)
	}
}

func TestAnonymousSessionsDoNotEndEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{})
	visitor := user("p", "")
	w.say(session(visitor, "one"), 1)
	w.pass(time.Hour)
	out, err := s.wake(t.Context(), w.say(session(visitor, "two"), 1))
	if n := len(endsOf(t, out, err)); n != 0 {
		t.Errorf("%d ends", n)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{})
	one := session(alice, "one")
	w.say(one, 2)
	w.pass(29 * time.Minute)
	out, err := s.idle(t.Context(), w.clock())
	if n := len(endsOf(t, out, err)); n != 0 {
		t.Fatalf("%d ends after 29 minutes", n)
	}
	w.pass(2 * time.Minute)
	out, err = s.idle(t.Context(), w.clock())
	want := []events.SessionEnded{{
		Scope: one, Cause: events.EndIdle, LastOrdinal: 2, Timestamp: events.Timestamp{Time: noon.Add(30 * time.Minute)},
	}}
	if diff := cmp.Diff(want, endsOf(t, out, err)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	w.pass(time.Minute)
	out, err = s.idle(t.Context(), w.clock())
	if n := len(endsOf(t, out, err)); n != 0 {
		t.Errorf("%d ends repeated while ingest is busy", n)
	}
	w.pass(announcedFor)
	out, err = s.idle(t.Context(), w.clock())
	if n := len(endsOf(t, out, err)); n != 1 {
		t.Errorf("%d ends repeated after a while, want 1", n)
	}
	// It spoke before the end arrived: that end is void, the next is another.
	w.say(one, 1)
	w.end(one, 2)
	w.pass(31 * time.Minute)
	out, err = s.idle(t.Context(), w.clock())
	if ends := endsOf(t, out, err); len(ends) != 1 || ends[0].LastOrdinal != 3 {
		t.Errorf("after it spoke again: %+v", ends)
	}
}

func TestIdleIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{})
	for i := range maxEnds + 5 {
		w.say(session(user("p", time.Duration(i).String()), "s"), 1)
	}
	w.pass(time.Hour)
	out, err := s.idle(t.Context(), w.clock())
	first := len(endsOf(t, out, err))
	out, err = s.idle(t.Context(), w.clock())
	if second := len(endsOf(t, out, err)); first != maxEnds || second != 5 {
		t.Errorf("%d ends, then %d", first, second)
	}
}
