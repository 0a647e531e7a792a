package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/clickhousetest"
	"palimpsest/internal/redisservertest"
)

// TestP7EnginesAreRestarted stops the memory store of six processes, then their
// audit log, then their streams, while people speak: publishers get their
// acknowledgement or an error, readiness tells, nothing is lost, and nobody has to
// do anything once the engines are back.
func TestP7EnginesAreRestarted(t *testing.T) {
	t.Parallel()
	redis, house := redisservertest.Launch(t), clickhousetest.Own(t)
	c := startClusterOn(t, engines{redis.URL(), "pal", house.DSN("native", "palimpsest")}, 1, soon...)
	const users, turns, part = 4, 40, 10
	disturbed, calm := scripts(users, turns), scripts(users, turns)

	redis.Kill()
	tellUpTo(c.instance, disturbed, part, func() {}) // publishers need no memory store
	c.ready(http.StatusServiceUnavailable)
	redis.Start()
	c.ready(http.StatusOK)

	house.Kill()
	tellUpTo(c.instance, disturbed, 2*part, func() {})

	c.nats.kill()
	c.ready(http.StatusServiceUnavailable)
	var told errgroup.Group
	for _, s := range disturbed {
		told.Go(func() error { return c.insist(s, 3*part) })
	}
	c.nats.begin()
	if err := told.Wait(); err != nil {
		t.Fatal(err)
	}
	c.ready(http.StatusOK)
	tellUpTo(c.instance, disturbed, turns, func() {})
	c.settled(everything("default"), users*turns)

	c.wantAsOne(disturbed, calm, users*turns)
}

// insist publishes up to a turn, each message until it is acknowledged.
func (c *cluster) insist(s *script, turn int) error {
	part := &script{who: s.who, turns: s.turns[:turn], next: s.next}
	s.next = turn
	var err error
	for range 1000 {
		if err = part.tell(c.t.Context(), c.instance, nil); err == nil {
			return nil
		}
	}
	return fmt.Errorf("never acknowledged: %w", err)
}

// ready waits until every process says with that status how it is.
func (c *cluster) ready(status int) {
	c.t.Helper()
	for _, m := range c.members {
		eventually(c.t, fmt.Sprintf("status %d of %s", status, m.service), func() error {
			res, err := http.Get(m.http + "/readyz")
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != status {
				return fmt.Errorf("status %d", res.StatusCode)
			}
			return nil
		})
	}
}
