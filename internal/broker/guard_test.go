package broker_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
	"palimpsest/internal/topology"
)

// disk is a file system whose free space the test decides.
type disk struct{ free atomic.Int64 }

func (d *disk) measure(string) (broker.Space, error) {
	return broker.Space{Free: d.free.Load(), Total: 100 << 30}, nil
}

func startOnDisk(t *testing.T) (*disk, *brokertest.Env) {
	t.Helper()
	d := &disk{}
	d.free.Store(50 << 30)
	return d, brokertest.StartWith(t, broker.EmbeddedConfig{Space: d.measure, SpaceInterval: 5 * time.Millisecond})
}

// until tries again until ok holds or the deadline ends the test.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx := bounded(t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func tryPublish(t *testing.T, env *brokertest.Env) error {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := env.JS.Publish(ctx, episodes, make([]byte, 1024))
	return err
}

func TestFullDiskRefusesEpisodesUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	d, env := startOnDisk(t)
	if err := tryPublish(t, env); err != nil {
		t.Fatal(err)
	}
	d.free.Store(400 << 20) // below the reserve, enough for the engine
	until(t, "episodes are refused", func() bool {
		var refused *jetstream.APIError
		return errors.As(tryPublish(t, env), &refused)
	})
	if err := env.Broker.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("Ready = %v", err)
	}
	stream, err := env.JS.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatalf("reads do not go on: %v", err)
	}
	if _, err := stream.GetMsg(bounded(t), 1); err != nil {
		t.Errorf("reads do not go on: %v", err)
	}
	d.free.Store(10 << 30)
	until(t, "episodes are taken again", func() bool { return tryPublish(t, env) == nil })
	if n := env.Conn.Stats().Reconnects; n != 0 {
		t.Errorf("the server was restarted %d times without need", n)
	}
	if err := env.Broker.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStarvedBrokerIsRestartedInPlace(t *testing.T) {
	t.Parallel()
	d, env := startOnDisk(t)
	if err := tryPublish(t, env); err != nil {
		t.Fatal(err)
	}
	d.free.Store(1 << 20)
	until(t, "episodes are refused", func() bool { return tryPublish(t, env) != nil })
	d.free.Store(10 << 30)
	until(t, "the server was restarted and takes episodes", func() bool {
		return env.Conn.Stats().Reconnects == 1 && tryPublish(t, env) == nil
	})
	if got := env.Broker.ClientURL(); got != env.URL {
		t.Errorf("address moved from %s to %s", env.URL, got)
	}
	until(t, "the broker is ready", func() bool { return env.Broker.Ready(t.Context()) == nil })
}

func TestFullDiskAtStartLosesNothing(t *testing.T) {
	t.Parallel()
	d := &disk{}
	d.free.Store(50 << 30)
	cfg := broker.EmbeddedConfig{
		Dir: t.TempDir(), Space: d.measure, SpaceInterval: 5 * time.Millisecond,
		Topology: topology.Config{EpisodesMaxBytes: 40 << 30, AuditMaxBytes: 5 << 30},
	}
	env := brokertest.StartWith(t, cfg)
	if err := tryPublish(t, env); err != nil {
		t.Fatal(err)
	}
	d.free.Store(400 << 20)
	env.Restart(t)
	if err := tryPublish(t, env); err == nil {
		t.Error("an episode was taken before the disk was looked at")
	}
	stream, err := env.JS.Stream(bounded(t), topology.StreamEpisodes)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		t.Errorf("%d episodes, want 1", n)
	}
	d.free.Store(50 << 30)
	until(t, "episodes are taken again", func() bool { return tryPublish(t, env) == nil })

	full := &disk{}
	full.free.Store(100 << 20)
	empty := brokertest.StartWith(t, broker.EmbeddedConfig{Space: full.measure})
	if err := empty.Broker.Ready(t.Context()); err == nil {
		t.Error("ready on a full disk")
	}
}

func TestOwnDiskIsMeasured(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	account, err := env.JS.AccountInfo(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if account.Limits.MaxStore <= 0 {
		t.Errorf("limit %s: there must be an explicit one", strconv.FormatInt(account.Limits.MaxStore, 10))
	}
}

// The guard must not take another caller's restart for a failure.
func TestRestartIsNotRepeatedByTheGuard(t *testing.T) {
	t.Parallel()
	_, env := startOnDisk(t)
	for n := range uint64(3) {
		env.Restart(t)
		if got := env.Conn.Stats().Reconnects; got != n+1 {
			t.Fatalf("%d reconnects after %d restarts", got, n+1)
		}
	}
	for range 5 {
		if err := tryPublish(t, env); err != nil {
			t.Fatal(err)
		}
	}
	if got := env.Conn.Stats().Reconnects; got != 3 {
		t.Errorf("%d reconnects after 3 restarts", got)
	}
}
