package redisserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Sentinel starts one that watches a master under a name, quick to replace it,
// and returns its address. It ends with the test.
func Sentinel(t testing.TB, name string, master *Server) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 1\nsentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 2000\n",
		name, master.Port())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, dir: t.TempDir(), port: freePort(t)}
	s.args = []string{config, "--sentinel", "--bind", "127.0.0.1", "--port", s.port}
	t.Cleanup(s.Kill)
	s.Start()
	s.until("the replicas to be known", func(ctx context.Context, client *goredis.Client) bool {
		replicas, err := client.Do(ctx, "SENTINEL", "REPLICAS", name).Slice()
		return err == nil && len(replicas) > 0
	})
	return s.Address()
}

// Nodes starts a cluster of so many masters, once each of them knows that it is
// whole.
func Nodes(t testing.TB, count int) []*Server {
	t.Helper()
	nodes := make([]*Server, count)
	for i := range nodes {
		nodes[i] = Launch(t, "--cluster-enabled", "yes", "--cluster-port", freePort(t), "--cluster-node-timeout", "2000")
		nodes[i].Do("CLUSTER", "ADDSLOTSRANGE", i*slots/count, (i+1)*slots/count-1)
	}
	for _, n := range nodes[1:] {
		n.Do("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, nodes[0].setting("--cluster-port"))
	}
	for _, n := range nodes {
		n.until("the cluster to be whole", func(ctx context.Context, client *goredis.Client) bool {
			info, err := client.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_size:%d", count))
		})
		n.until("its search to see the nodes", func(ctx context.Context, client *goredis.Client) bool {
			return client.Do(ctx, "FT._LIST").Err() == nil && client.Do(ctx, "SEARCH.CLUSTERREFRESH").Err() == nil
		})
	}
	return nodes
}

const slots = 16384

func (s *Server) setting(flag string) string {
	for i, a := range s.args {
		if a == flag {
			return s.args[i+1]
		}
	}
	return ""
}

// ClusterURL names the nodes of a cluster.
func ClusterURL(nodes []*Server) string {
	further := make([]string, 0, len(nodes))
	for _, n := range nodes[1:] {
		further = append(further, "addr="+n.Address())
	}
	return "redis://" + nodes[0].Address() + "?" + strings.Join(further, "&")
}

// Cluster starts a cluster and returns its URL.
func Cluster(t testing.TB, count int) string {
	t.Helper()
	return ClusterURL(Nodes(t, count))
}

// until repeats a command until the reply is the wanted one.
func (s *Server) until(what string, holds func(ctx context.Context, client *goredis.Client) bool) {
	s.t.Helper()
	client := s.client()
	defer client.Close() //nolint:errcheck // nothing is under way
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds(ctx, client) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.t.Fatalf("waited %v for %s", startLimit, what)
		}
	}
}
