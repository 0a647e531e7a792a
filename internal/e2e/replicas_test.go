package e2e

import (
	"errors"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"palimpsest/internal/topology"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// soon has what a dead process left come back within seconds, where an operator
// would wait a minute.
var soon = []string{"scheduler:", "  sweep: 2s", "  overdue: 5s"}

// TestP1TwelveProcessesAreRestarted runs two replicas of each service and restarts
// all of them in turn under load, as an upgrade does. All episodes are there, once
// and in order, and the facts equal those of one undisturbed process, byte by byte.
func TestP1TwelveProcessesAreRestarted(t *testing.T) {
	t.Parallel()
	const users, each = 4, 4 // episodes of a user while one process ends
	c := startCluster(t, 2, soon...)
	turns := len(c.members) * each
	disturbed, calm := scripts(users, turns), scripts(users, turns)

	said := 0
	for _, m := range c.members {
		said += each
		tellUpTo(c.instance, disturbed, said, func() {
			if took, err := m.stop(); err != nil {
				t.Errorf("%s ended after %v: %v", m.service, took, err)
			}
		})
		if err := m.launch(); err != nil {
			t.Fatalf("%s: %v", m.service, err)
		}
	}
	c.through(c.of("query")[1])
	c.settled(everything("default"), users*turns)

	c.wantAsOne(disturbed, calm, users*turns)
	wantReplayed(t, c.instance, everything("default"))
}

// tellUpTo tells every script at once up to a turn, and calls meanwhile in the
// meantime.
func tellUpTo(i *instance, all []*script, turn int, meanwhile func()) {
	i.t.Helper()
	var told errgroup.Group
	for _, s := range all {
		part := &script{who: s.who, turns: s.turns[:turn], next: s.next}
		s.next = turn
		told.Go(func() error { return part.tell(i.t.Context(), i, nil) })
	}
	meanwhile()
	if err := told.Wait(); err != nil {
		i.t.Fatal(err)
	}
}

// wantSaid wants all that a script says, once, in its order.
func wantSaid(t testing.TB, i *instance, s *script) {
	t.Helper()
	got := i.recent(scope.Under(s.who))
	for l, r := 0, len(got)-1; l < r; l, r = l+1, r-1 {
		got[l], got[r] = got[r], got[l]
	}
	if diff := cmp.Diff(s.turns, contents(got)); diff != "" {
		t.Errorf("%s: what was said (-said +stored):\n%s", s.who.User, diff)
	}
}

// exported is what `palimpsest export --content --all-users` prints.
func exported(t testing.TB, i *instance) string {
	t.Helper()
	out, said, code := run(t, nil, "--server", i.HTTP, "export", "--content", "--all-users")
	if code != 0 {
		t.Fatalf("export: code %d: %s", code, said)
	}
	return out
}

// TestP7DrainAnswersWhoWaits stops query while a caller waits for an outcome that
// does not come: query accepts no further connection, answers the caller, and exits
// with 0. A second signal ends a process at once.
func TestP7DrainAnswersWhoWaits(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1, "  drain: 1s", "query:", "  wait: 60s") // the first of http
	c.of("decider")[0].kill()
	query := c.of("query")[0]

	type answer struct {
		written api.Written
		err     error
	}
	commands := uint64(0)
	ask := func() <-chan answer {
		answered := make(chan answer, 1)
		go func() {
			written, err := c.api.Remember(t.Context(), api.Remember{Scope: api.Scope{User: "nora"}, Text: "Locker 7 is blue."}, "")
			answered <- answer{written, err}
		}()
		commands++
		eventually(t, "a command under way", func() error {
			stream, err := c.js.Stream(t.Context(), topology.StreamCommands)
			if err == nil && stream.CachedInfo().State.Msgs != commands {
				err = errors.New("not yet")
			}
			return err
		})
		return answered
	}
	answered := ask()
	took, err := query.stop()
	if err != nil {
		t.Errorf("ended with %v", err)
	}
	if a := <-answered; a.err != nil || a.written.Status != "accepted" {
		t.Errorf("after %v the caller was told %+v, %v", took, a.written, a.err)
	}

	c.set("drain: 1s", "drain: 1m") // the second signal has to come before the end
	if err := query.launch(); err != nil {
		t.Fatal(err)
	}
	c.through(query)
	ask()
	if err := query.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody is let in", func() error {
		res, err := http.Get(query.http + "/healthz")
		if err == nil {
			return errors.Join(errors.New("somebody was"), res.Body.Close())
		}
		return nil
	})
	began := time.Now()
	_, err = query.stop()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("after the second signal it ended with %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the second signal took %v", took)
	}
}
