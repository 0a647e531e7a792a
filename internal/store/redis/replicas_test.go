package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
	"palimpsest/internal/store/storetest"
	"palimpsest/internal/testengine/redisserver"
	"palimpsest/pkg/events"
)

// TestP1Failover checks that the store follows when Sentinel makes a replica the
// master, and writes nothing there before the writes that the replica may lack are
// restored.
func TestP1Failover(t *testing.T) {
	t.Parallel()
	master := redisserver.Launch(t)
	replica := redisserver.Launch(t, "--replicaof", "127.0.0.1 "+fmt.Sprint(master.Port()))
	await(t, "the replica", func() bool {
		return strings.Contains(fmt.Sprint(replica.Do("INFO", "replication")), "master_link_status:up")
	})
	cfg := ownConfig(master)
	cfg.URL = "redis://" + redisserver.Sentinel(t, "memory", master) + "/0?master_name=memory"
	s := openAt(t, cfg)
	tell(t, s, "1", "hello 1")
	await(t, "the replica to have it", func() bool {
		return strings.Contains(fmt.Sprint(replica.Do("KEYS", "pal:g1:*:e:*")), ":e:")
	})
	master.Kill()
	await(t, "the loss", func() bool { return lost(s) })
	heal, _ := remedy("1")
	mend(t, s, heal)
	if last := tell(t, s, "2", "hello 2").LastOrdinal; last != 2 {
		t.Errorf("the next episode is number %d, want 2", last)
	}
	if role := fmt.Sprint(replica.Do("ROLE")); !strings.Contains(role, "master") {
		t.Errorf("the replica is %s", role)
	}
}

// TestStoreOnACluster holds the store to its contract on three nodes, between
// which its scopes are spread.
func TestStoreOnACluster(t *testing.T) {
	t.Parallel()
	cluster := redisserver.Cluster(t, 3)
	config := func(t *testing.T) Config {
		t.Helper()
		return Config{URL: cluster, Namespace: fmt.Sprintf("test-%d", namespaces.Add(1)), Embedder: testEmbedder}
	}
	storetest.RunAll(t, func(t *testing.T) store.Store {
		return openNew(t, ahead(config(t)))
	}, storetest.Options{
		Later:      later,
		Dimensions: testEmbedder.Dimensions,
		Reopen: func(t *testing.T, s store.Store) store.Store {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openAt(t, s.(*Store).cfg) //nolint:forcetypeassert // opened above
		},
	})
}

// TestP1ANodeComesBackWithLess checks that a loss on one node of a cluster stops the
// writes to all of them.
func TestP1ANodeComesBackWithLess(t *testing.T) {
	t.Parallel()
	nodes := redisserver.Nodes(t, 3)
	cfg := ownConfig(nodes[0])
	cfg.URL = redisserver.ClusterURL(nodes)
	s := openAt(t, cfg)
	tell(t, s, "1", "hello 1")
	nodes[1].Kill()
	nodes[1].Start()
	await(t, "the loss", func() bool {
		// It is what a new connection meets.
		_, _ = s.State(t.Context(), ana)
		_ = s.Ping(t.Context())
		return lost(s)
	})
	heal, _ := remedy("1")
	await(t, "the mend", func() bool { return s.Mend(t.Context(), heal) == nil })
	if last := tell(t, s, "2", "hello 2").LastOrdinal; last != 2 {
		t.Errorf("the next episode is number %d, want 2", last)
	}
}

// TestP1NothingIsWrittenToANodeThatMayLackSomething: in a cluster no script can ask
// the epoch record, so it is the first connection to a node that was started again that
// must not carry a write. Nothing looks before.
func TestP1NothingIsWrittenToANodeThatMayLackSomething(t *testing.T) {
	t.Parallel()
	nodes := redisserver.Nodes(t, 3)
	cfg := ownConfig(nodes[0])
	cfg.URL, cfg.Pulse = redisserver.ClusterURL(nodes), time.Hour
	s := openAt(t, cfg)
	tell(t, s, "1", "hello 1")
	for _, node := range nodes {
		if strings.Contains(fmt.Sprint(node.Do("KEYS", "pal:g1:*:e:*")), ":e:") {
			node.Kill()
			node.Start()
			await(t, "the cluster", func() bool {
				return strings.Contains(fmt.Sprint(node.Do("CLUSTER", "INFO")), "cluster_state:ok")
			})
		}
	}
	await(t, "the refusal", func() bool {
		_, err := s.PutEpisode(t.Context(), spoken("2"))
		if err == nil {
			t.Fatal("an episode was stored on a node that may have lost some")
		}
		return errors.Is(err, store.ErrLost)
	})
	heal, _ := remedy("1")
	mend(t, s, heal)
	if last := tell(t, s, "2", "hello 2").LastOrdinal; last != 2 {
		t.Errorf("the next episode is number %d, want 2", last)
	}
}

// diesBehind fails the commands that change a key, once a script was run.
type diesBehind struct {
	key string
	ran atomic.Bool
}

func (*diesBehind) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (d *diesBehind) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if d.ran.Load() && len(cmd.Args()) > 1 && cmd.Args()[1] == d.key {
			err := errors.New("died")
			cmd.SetErr(err)
			return err
		}
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "eval") && err == nil {
			d.ran.Store(true)
		}
		return err
	}
}

func (*diesBehind) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// TestP1AHoldOfAProcessThatDied: in a cluster the wait queue is of another slot than the
// hold. An effect that is there is not applied again.
func TestP1AHoldOfAProcessThatDied(t *testing.T) {
	t.Parallel()
	nodes := redisserver.Nodes(t, 3)
	cfg := ownConfig(nodes[0])
	cfg.URL, cfg.Pulse = redisserver.ClusterURL(nodes), time.Hour
	dies, s := openAt(t, cfg), openAt(t, cfg)
	tell(t, s, "1", "hello")
	addHook(dies, &diesBehind{key: s.layout().waitQueue()})
	e := benchEffect("ana", 1)
	due := said0.Add(time.Hour)
	e.Scope, e.Facts, e.Holds = ana, nil, []events.Hold{{ID: "h1", HeldAt: said0, Due: &due}}
	if err := dies.Apply(t.Context(), e, 1); err == nil {
		t.Fatal("the process did not die")
	}
	if state, err := s.State(t.Context(), ana); err != nil || state.Revision != 1 {
		t.Fatalf("state %+v, %v, want the effect", state, err)
	}
	var holds []string
	if err := s.DueHolds(t.Context(), due, func(h store.DueHold) bool { holds = append(holds, h.ID); return true }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(holds, []string{"h1"}) {
		t.Errorf("due: %q, want the hold", holds)
	}
}
