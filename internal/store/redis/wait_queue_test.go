package redis

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// listed are the entries of a part of the wait queue.
func listed(t testing.TB, s *Store, part string) []string {
	t.Helper()
	of := startingWith(part)
	reply, err := s.call(t.Context(), "ZRANGE", s.layout().waitQueue(), of.min, of.max, "BYLEX")
	if err != nil {
		t.Fatal(err)
	}
	return texts(reply)
}

func pendingScopes(t testing.TB, s *Store, rule string) (list []scope.Scope) {
	t.Helper()
	err := s.Pending(t.Context(), rule, func(p store.Pending) bool {
		list = append(list, p.Scope)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// cover consolidates all that ana has said.
func cover(t testing.TB, s *Store, revision, last uint64) {
	t.Helper()
	e := benchEffect("ana", revision)
	e.Scope, e.Watermark = ana, &last
	if err := s.Apply(t.Context(), e, revision); err != nil {
		t.Fatal(err)
	}
}

// TestWaitQueueLosesWhatIsSettled: scopes that are settled for every rule, sessions that
// went on or ended, holds that were released. Sessions that go on are listed anew.
func TestWaitQueueLosesWhatIsSettled(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	cover(t, s, 1, 1)
	for _, rule := range []string{"sleep", "turn"} {
		pendingScopes(t, s, rule)
	}
	if got := listed(t, s, waitQueuePending); len(got) != 1 {
		t.Fatalf("listed: %q, while another rule is pending", got)
	}
	if _, err := s.call(t.Context(), "DEL", s.layout().shared(keyRules)); err != nil {
		t.Fatal(err)
	}
	pendingScopes(t, s, "turn")
	if got := listed(t, s, waitQueuePending); len(got) != 0 {
		t.Errorf("listed: %q, want no settled scope", got)
	}

	began := listed(t, s, waitQueueIdle)
	later := ana
	later.Session = "s"
	e := memory.Episode{ID: "2", Source: "app", Scope: later, Role: "user", Content: "more", ArrivedAt: said0.Add(time.Hour)}
	if _, err := s.PutEpisode(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	idle := func(at time.Time) (n int) {
		if err := s.IdleSessions(t.Context(), at, func(memory.Session) bool { n++; return true }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := idle(said0.Add(time.Minute)); n != 0 {
		t.Errorf("%d sessions are idle, want none: it went on", n)
	}
	want := []string{s.place(ana).idle("s", said0.Add(time.Hour).UnixMicro())}
	if got := listed(t, s, waitQueueIdle); cmp.Diff(want, got) != "" {
		t.Errorf("listed: %q, want %q; it began as %q", got, want, began)
	}
	if n := idle(said0.Add(2 * time.Hour)); n != 1 {
		t.Errorf("%d sessions are idle, want 1", n)
	}
}

// TestWaitQueueKeepsWhatComesMeanwhile: an episode that is stored after a scope was found
// settled and before its entry is taken out.
func TestWaitQueueKeepsWhatComesMeanwhile(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	cover(t, s, 1, 1)
	if err := s.watchRule(t.Context(), "turn"); err != nil {
		t.Fatal(err)
	}
	first := true
	read := func(entries []string) ([]string, []store.Standing, error) {
		right, list, err := s.standings(t.Context(), entries)
		if first {
			first = false
			tell(t, s, "2", "meanwhile")
		}
		return right, list, err
	}
	if err := eachListed(t.Context(), s, startingWith(waitQueuePending), read, func(store.Standing) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := pendingScopes(t, s, "turn"); len(got) != 1 {
		t.Errorf("pending: %v, want the scope", got)
	}
}

// TestP1WaitQueueOfASweepThatDied: an episode is stored while a process takes the entry of
// its scope out, and the process ends before it reads the scope once more.
func TestP1WaitQueueOfASweepThatDied(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	cover(t, s, 1, 1)
	if err := s.watchRule(t.Context(), "turn"); err != nil {
		t.Fatal(err)
	}
	died, reads := errors.New("died"), 0
	read := func(entries []string) ([]string, []store.Standing, error) {
		if reads++; reads > 1 {
			return nil, nil, died
		}
		right, list, err := s.standings(t.Context(), entries)
		tell(t, s, "2", "meanwhile")
		return right, list, err
	}
	err := eachListed(t.Context(), s, startingWith(waitQueuePending), read, func(store.Standing) bool { return true })
	if !errors.Is(err, died) {
		t.Fatalf("error %v, want the death", err)
	}
	if got := pendingScopes(t, s, "turn"); len(got) != 1 {
		t.Errorf("pending: %v, want the scope", got)
	}
	if got := listed(t, s, waitQueueDoubt); len(got) != 0 {
		t.Errorf("still in doubt: %q", got)
	}
}

// TestWaitQueueIsMadeAgain from rows: the node of a cluster that had it came back empty.
func TestWaitQueueIsMadeAgain(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	e := benchEffect("ana", 1)
	due := said0.Add(time.Hour)
	e.Scope, e.Facts, e.Holds = ana, nil, []events.Hold{{ID: "h1", HeldAt: said0, Due: &due}}
	if err := s.Apply(t.Context(), e, 1); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, part := range []string{waitQueueDue, waitQueueIdle, waitQueuePending} {
		want = append(want, listed(t, s, part)...)
	}
	if _, err := s.call(t.Context(), "DEL", s.layout().waitQueue()); err != nil {
		t.Fatal(err)
	}
	if err := s.listAgain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, listed(t, s, "")); len(want) != 3 || diff != "" {
		t.Errorf("wait queue (-before +again):\n%s", diff)
	}
}

// TestWaitQueueOfAProcessThatDied: the entries of an episode are added with those of its
// second delivery.
func TestWaitQueueOfAProcessThatDied(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	want := listed(t, s, "")
	if _, err := s.call(t.Context(), "DEL", s.layout().waitQueue()); err != nil {
		t.Fatal(err)
	}
	tell(t, s, "1", "hello")
	if diff := cmp.Diff(want, listed(t, s, "")); diff != "" {
		t.Errorf("wait queue (-before +again):\n%s", diff)
	}
}
