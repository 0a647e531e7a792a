package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"palimpsest/internal/audit/audittest"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/scope"
)

// replicated is the topology on a cluster of three.
var replicated = topology.Declare(topology.Config{Replicas: 3})

// cluster runs three servers that know nothing of Palimpsest.
func cluster(t *testing.T) (urls string, servers []*server.Server) {
	t.Helper()
	var routes []*url.URL
	var ports []int
	var taken []net.Listener
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, l)
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		routes = append(routes, &url.URL{Scheme: "nats", Host: l.Addr().String()})
	}
	for _, l := range taken { // all at once, so that no port is drawn twice
		_ = l.Close()
	}
	all := make([]string, len(routes))
	for n := range all {
		srv := brokertest.Serve(t, &server.Options{
			ServerName: fmt.Sprintf("broker-%d", n), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), Routes: routes,
			Cluster: server.ClusterOpts{Name: "brokers", Host: "127.0.0.1", Port: ports[n]},
		})
		all[n], servers = srv.ClientURL(), append(servers, srv)
	}
	return strings.Join(all, ","), servers
}

// TestClusterOfThree: processes that start together with the servers create the
// topology on every server, their reads are complete, and readiness follows the
// servers that stop.
func TestClusterOfThree(t *testing.T) {
	t.Parallel()
	urls, servers := cluster(t)
	remotes := make([]*broker.Remote, 6)
	var starts errgroup.Group
	for n := range remotes {
		starts.Go(func() (err error) {
			remotes[n], err = broker.OpenRemote(patient(t), broker.ConnectConfig{URL: urls, Name: "test"}, replicated)
			return err
		})
	}
	if err := starts.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, r := range remotes {
		defer r.Shutdown(context.Background())
	}
	js := remotes[0].JetStream()
	if found, err := topology.Diff(bounded(t), js, replicated); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	for _, s := range replicated.Streams {
		stream, err := js.Stream(bounded(t), s.Config.Name)
		if err != nil || stream.CachedInfo().Cluster == nil || len(stream.CachedInfo().Cluster.Replicas) != 2 {
			t.Errorf("%s: %v, %v", s.Config.Name, stream, err)
		}
	}
	readsAll(t, js)
	readyWhileMostAreThere(t, remotes[0], servers)
}

// patient is a context that outlives some elections.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// readyWhileMostAreThere stops one server after the other.
func readyWhileMostAreThere(t *testing.T, r *broker.Remote, servers []*server.Server) {
	t.Helper()
	if err := r.Ready(bounded(t)); err != nil || len(r.Away()) > 0 {
		t.Errorf("%v, %v are away", err, r.Away())
	}
	for n, gone := range servers[:2] {
		gone.Shutdown()
		gone.WaitForShutdown()
		until(t, fmt.Sprintf("%d servers are away", n+1), func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := r.Ready(ctx)
			if n == 0 {
				return err == nil && slices.Equal(r.Away(), []string{"broker-0"})
			}
			return errors.Is(err, broker.ErrNoQuorum) && strings.Contains(err.Error(), "of 3 servers, 2 are away")
		})
	}
}

// readsAll appends to the journal and reads it at once, on whichever server the
// reader is.
func readsAll(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	j := journal.New(js)
	s := scope.Scope{Project: "default", User: "alice"}
	after, revision := uint64(0), uint64(0)
	for range 30 {
		for range 4 {
			revision++
			meta, effect := audittest.JournalEffect(s, revision, "a")
			var err error
			if after, err = j.Append(bounded(t), meta, effect, after); err != nil {
				t.Fatal(err)
			}
		}
		var got []uint64
		for e, err := range j.ReadScope(bounded(t), s, 0) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Data.Revision)
		}
		if len(got) != int(revision) || !slices.IsSorted(got) {
			t.Errorf("read %d of %d revisions", len(got), revision)
		}
	}
}
