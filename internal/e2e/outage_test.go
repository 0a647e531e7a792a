package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/internal/testengine/redisserver"
	"palimpsest/internal/topology"
	"palimpsest/pkg/api"
)

// outage takes an engine away and brings it back.
type outage struct {
	engine string
	check  string // that names it on /readyz
	// refuses: publishers get errors meanwhile, if it is away for longer than they wait
	// for a connection.
	refuses    bool
	begin, end func()
}

// TestP7EnginesAreRestarted stops the memory store of six processes, then their
// audit log, then their streams, under load: publishers get an acknowledgement or
// an error, /readyz reports the outage, nothing is lost, and the processes recover
// without an operator once the engines are back.
//
// With E2E_FULL each is away for 30 s, at 200 episodes a second.
func TestP7EnginesAreRestarted(t *testing.T) {
	t.Parallel()
	away, load := time.Second, 20
	if full() {
		away, load = 30*time.Second, 200
	}
	redis, house := redisserver.Launch(t), clickhouseserver.Own(t)
	c := startClusterOn(t, engines{redis.URL(), "pal", house.DSN("native", "palimpsest")}, 1, soon...)
	people := gather(c, load)

	for _, o := range []outage{
		{"the memory store", "memory", false, redis.Kill, redis.Start},
		{"the audit log", "audit", false, house.Pause, house.Resume},
		{"NATS", "nats", true, c.nats.kill, c.nats.begin},
	} {
		before, errors := people.told()
		speaking := people.speak()
		o.begin()
		c.tells(o.check)
		<-time.After(away) // which is the outage, whatever happens in it
		waits := o.backlog(c)
		o.end()
		back := time.Now()
		speaking.end()
		all, refused := people.told()
		c.drained(all)
		t.Logf("%s away for %v: %d errors%s; done with %d episodes %v after it was back",
			o.engine, away, refused-errors, waits, all-before, since(back))
		if refused > errors && !o.refuses || refused == errors && o.refuses && away > answerLimit {
			t.Errorf("without %s publishers got %d errors", o.engine, refused-errors)
		}
		c.ready(http.StatusOK)
	}
	if people.slowest > answerLimit {
		t.Errorf("a publisher had no answer for %v", people.slowest)
	}
	all, _ := people.told()
	c.wantAsOne(people.scripts, people.calm(), all)
}

// answerLimit bounds how long a publisher waits for an acknowledgement or an
// error: its library gives up after five seconds.
const answerLimit = 10 * time.Second

// since is how long ago something was, as one would tell it.
func since(at time.Time) time.Duration { return time.Since(at).Round(10 * time.Millisecond) }

// backlog tells what waits in the streams meanwhile, where there are any.
func (o outage) backlog(c *cluster) string {
	if o.refuses {
		return ""
	}
	return "," + c.backlog() + " wait"
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
			have, says, err := m.readiness()
			if err == nil && have != status {
				err = fmt.Errorf("status %d: %+v", have, says)
			}
			return err
		})
	}
}

// tells waits until every process that needs an engine says that it is the one
// that is missing.
func (c *cluster) tells(check string) {
	c.t.Helper()
	who := 0
	for _, m := range c.members {
		eventually(c.t, fmt.Sprintf("%s says that %s is away", m.service, check), func() error {
			status, says, err := m.readiness()
			if err != nil {
				return err
			}
			named, needed := says.Checks[check]
			if needed && (named.OK || named.Error == "" || status != http.StatusServiceUnavailable) {
				return fmt.Errorf("status %d: %+v", status, says)
			}
			if needed {
				who++
			}
			return nil
		})
	}
	if who == 0 {
		c.t.Errorf("nobody needs %s", check)
	}
}

// readiness asks a process how it is.
func (m *member) readiness() (status int, says api.Readiness, err error) {
	res, err := http.Get(m.http + "/readyz")
	if err != nil {
		return 0, says, err
	}
	defer res.Body.Close()
	return res.StatusCode, says, json.NewDecoder(res.Body).Decode(&says)
}

// backlog counts what waits in the streams for the services, by stream.
func (c *cluster) backlog() string {
	c.t.Helper()
	waits := ""
	for _, d := range topology.Declare(topology.Config{}).Streams {
		n, err := c.pending(d)
		if err != nil {
			c.t.Fatal(err)
		}
		if n > 0 {
			waits += fmt.Sprintf(" %d in %s", n, d.Config.Name)
		}
	}
	return waits
}

// pending counts what a stream's consumers have yet to be done with.
func (i *instance) pending(of topology.Stream) (n int, err error) {
	for _, d := range of.Consumers {
		consumer, err := i.js.Consumer(i.t.Context(), of.Config.Name, d.Durable)
		if err != nil {
			return 0, fmt.Errorf("consumer %s: %w", d.Durable, err)
		}
		info := consumer.CachedInfo()
		n += int(info.NumPending) + info.NumAckPending
	}
	return n, nil
}

// drained waits until the services are done with all that was said.
func (c *cluster) drained(said int) {
	c.t.Helper()
	c.settled(everything("default"), said)
	for _, d := range topology.Declare(topology.Config{}).Streams {
		eventually(c.t, d.Config.Name+" to be drained", func() error {
			n, err := c.pending(d)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d wait", n)
			}
			return err
		})
	}
}
