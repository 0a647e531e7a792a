package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"palimpsest/internal/topology"
)

// fullEnv asks for the whole of a test of which only a part fits into the time
// that everybody waits.
const fullEnv = "E2E_FULL"

func full() bool { return os.Getenv(fullEnv) != "" }

// startBrokers starts a cluster of NATS servers.
func startBrokers(t testing.TB, count int) []*natsServer {
	t.Helper()
	routes := make([]string, count)
	for n, address := range freeAddresses(t, count) {
		routes[n] = "nats://" + address
	}
	brokers := make([]*natsServer, count)
	for n, route := range routes {
		brokers[n] = beginNATS(t, fmt.Sprintf("server_name: broker-%d\ncluster { name: brokers, listen: %s, routes: [%s] }\n",
			n, strings.TrimPrefix(route, "nats://"), strings.Join(routes, ", ")))
	}
	return brokers
}

// freeAddresses returns loopback addresses that are free when it returns.
func freeAddresses(t testing.TB, count int) []string {
	t.Helper()
	addresses := make([]string, count)
	for n := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		addresses[n] = l.Addr().String()
	}
	return addresses
}

func urls(brokers []*natsServer) string {
	all := make([]string, len(brokers))
	for n, b := range brokers {
		all[n] = b.url()
	}
	return strings.Join(all, ",")
}

// TestP1BrokersOfAClusterAreKilled kills the NATS servers of a cluster of three
// while six processes work on it under load, one at a time, always the leader of
// EPISODES: the others keep all acknowledged messages, and the restarted one
// catches up. Two stopped servers are an outage: /readyz is red, publishers get
// errors, and all goes on once one of them is back.
//
// A kill costs the seconds of an election, so that without
// E2E_FULL there is one.
func TestP1BrokersOfAClusterAreKilled(t *testing.T) {
	t.Parallel()
	kills, part := 1, 10
	if full() {
		kills, part = 3, 19 // less than a hundred turns, see loadGenerator
	}
	const users = 4
	turns := (kills + 2) * part
	disturbed, calm := scripts(users, turns), scripts(users, turns)
	c := startClusterOver(t, startBrokers(t, 3), ownEngines(t), 1, soon...)
	c.replicated()

	tellUpTo(c.instance, disturbed, part, func() {})
	for n := range kills {
		away := c.leader(topology.StreamEpisodes)
		c.insistUpTo(disturbed, (n+2)*part, away.kill)
		c.ready(http.StatusOK) // two of three are enough
		away.begin()
		c.replicated()
	}
	if kills > 1 {
		c.brokers[0].kill()
		c.brokers[1].kill()
		c.ready(http.StatusServiceUnavailable)
		c.insistUpTo(disturbed, turns, c.brokers[1].begin)
		c.ready(http.StatusOK)
		c.brokers[0].begin()
		c.replicated()
	}
	c.insistUpTo(disturbed, turns, func() {})
	c.settled(everything("default"), users*turns)

	c.wantAsOne(disturbed, calm, users*turns)
	wantReplayed(t, c.instance, everything("default"))
}

// insistUpTo tells every script at once up to a turn, each message until it is
// acknowledged, and calls meanwhile in the meantime.
func (c *cluster) insistUpTo(all []*script, turn int, meanwhile func()) {
	c.t.Helper()
	var told errgroup.Group
	for _, s := range all {
		told.Go(func() error { return c.insist(s, turn) })
	}
	meanwhile()
	if err := told.Wait(); err != nil {
		c.t.Fatal(err)
	}
}

// leader is the server that leads a stream.
func (c *cluster) leader(stream string) (found *natsServer) {
	c.t.Helper()
	eventually(c.t, "a leader of "+stream, func() error {
		s, err := c.js.Stream(c.t.Context(), stream)
		if err != nil {
			return err
		}
		for n, b := range c.brokers {
			if s.CachedInfo().Cluster.Leader == fmt.Sprintf("broker-%d", n) {
				found = b
				return nil
			}
		}
		return fmt.Errorf("%+v", s.CachedInfo().Cluster)
	})
	return found
}

// replicated waits until every server has what every other has of each stream
// and consumer.
func (c *cluster) replicated() {
	c.t.Helper()
	declared := topology.Declare(topology.Config{Replicas: len(c.brokers)})
	eventually(c.t, "each stream on each broker", func() error {
		for _, d := range declared.Streams {
			s, err := c.js.Stream(c.t.Context(), d.Config.Name)
			if err != nil {
				return fmt.Errorf("stream %s: %w", d.Config.Name, err)
			}
			info := s.CachedInfo()
			if info.Config.Replicas != len(c.brokers) {
				c.t.Fatalf("stream %s has %d replicas", d.Config.Name, info.Config.Replicas)
			}
			if err := c.current(info.Cluster); err != nil {
				return fmt.Errorf("stream %s: %w", d.Config.Name, err)
			}
			for _, of := range d.Consumers {
				consumer, err := s.Consumer(c.t.Context(), of.Durable)
				if err == nil {
					err = c.current(consumer.CachedInfo().Cluster)
				}
				if err != nil {
					return fmt.Errorf("consumer %s: %w", of.Durable, err)
				}
			}
		}
		return nil
	})
}

// current is nil once a leader has followers on all other brokers that know what
// it knows.
func (c *cluster) current(of *jetstream.ClusterInfo) error {
	if of == nil || of.Leader == "" || len(of.Replicas) != len(c.brokers)-1 {
		return fmt.Errorf("cluster %+v", of)
	}
	for _, r := range of.Replicas {
		if !r.Current || r.Offline {
			return fmt.Errorf("replica %+v", *r)
		}
	}
	return nil
}
