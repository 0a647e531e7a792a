package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/clickhousetest"
	"palimpsest/internal/redisservertest"
	"palimpsest/internal/topology"
	"palimpsest/pkg/scope"
)

// The limits of what Redis is asked. An episode takes about 35 commands in one process
// and 36 in six: 13 write hashes. On a busy machine, the commands of clocks count for
// more.
const (
	commandsPerEpisode = 37 // as the server counts them, those of scripts included
	searchesPerEpisode = 2
	commandsIdle       = 5 // a second
)

// TestRedisCommands counts the Redis commands for episodes of one statement and
// those of idle processes, in one process and in six.
func TestRedisCommands(t *testing.T) {
	t.Parallel()
	t.Run("one process", func(t *testing.T) {
		t.Parallel()
		launched, nats := redisservertest.Launch(t), startNATS(t)
		config := filepath.Join(t.TempDir(), "palimpsest.yaml")
		text := fmt.Sprintf("memory: %s\nnats:\n  url: %s\n", launched.URL(), nats.url())
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		checkCommands(t, launched, start(t, t.TempDir(), "--config", config).instance)
	})
	t.Run("six processes", func(t *testing.T) {
		t.Parallel()
		launched := redisservertest.Launch(t)
		c := startClusterOn(t, engines{redis: launched.URL(), namespace: "cost", clickhouse: clickhousetest.DSN(t)}, 1)
		checkCommands(t, launched, c.instance)
	})
}

// checkCommands publishes episodes, each of another user and once the one before is in
// the audit log.
func checkCommands(t *testing.T, launched *redisservertest.Server, c *instance) {
	t.Helper()
	const episodes = 1000
	options, err := goredis.ParseURL(launched.URL())
	if err != nil {
		t.Fatal(err)
	}
	server := goredis.NewClient(options)
	t.Cleanup(func() { _ = server.Close() })

	c.t = t
	c.one("warm", 1)
	before := commandStats(t, server)
	for n := range episodes {
		c.one(fmt.Sprintf("user%04d", n), uint64(n+2))
	}
	c.drainedStreams()
	spent := spentSince(before, commandStats(t, server))
	all, searches := spent.total(), spent.searches()
	t.Logf("%d episodes: %.1f commands each, %.2f of them searches\n%s", episodes, float64(all)/float64(episodes),
		float64(searches)/float64(episodes), spent.per(episodes))
	if all > commandsPerEpisode*episodes {
		t.Errorf("%.1f commands an episode, want at most %d", float64(all)/float64(episodes), commandsPerEpisode)
	}
	if searches > searchesPerEpisode*episodes {
		t.Errorf("%.2f searches an episode, want at most %d", float64(searches)/float64(episodes), searchesPerEpisode)
	}

	const watched = 10 * time.Second
	settle := time.NewTimer(watched / 2) // the last embedding is stored
	<-settle.C
	before = commandStats(t, server)
	settle.Reset(watched)
	<-settle.C
	idle := spentSince(before, commandStats(t, server))
	t.Logf("idle: %.1f commands a second\n%s", float64(idle.total())/watched.Seconds(), idle.per(1))
	if idle.total() > commandsIdle*int(watched.Seconds()) {
		t.Errorf("%.1f commands a second while nothing happens, want at most %d", float64(idle.total())/watched.Seconds(), commandsIdle)
	}
}

// one publishes an episode of one statement, and waits until AUDIT has so many
// messages.
func (i *instance) one(user string, effects uint64) {
	i.t.Helper()
	i.publish(scope.Scope{Project: scope.DefaultProject, User: user, Agent: "assistant", Session: "s1"}, "",
		map[string]any{"role": "user", "content": "I live in Oslo."})
	audit, err := i.js.Stream(i.t.Context(), topology.StreamAudit)
	if err != nil {
		i.t.Fatal(err)
	}
	eventually(i.t, "the effect of "+user, func() error {
		info, err := audit.Info(i.t.Context())
		if err == nil && info.State.Msgs < effects {
			err = fmt.Errorf("AUDIT has %d effects, want %d", info.State.Msgs, effects)
		}
		return err
	})
}

// drainedStreams is drained without a question to the store.
func (i *instance) drainedStreams() {
	i.t.Helper()
	for _, d := range topology.Declare(topology.Config{}).Streams {
		eventually(i.t, d.Config.Name+" to be drained", func() error {
			n, err := i.pending(d)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d wait", n)
			}
			return err
		})
	}
}

// calls are how often a server ran each command.
type calls map[string]int

func commandStats(t *testing.T, server *goredis.Client) calls {
	t.Helper()
	text, err := server.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	found := calls{}
	for line := range strings.Lines(text) {
		name, values, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		count, _, _ := strings.Cut(values, ",")
		if found[name], err = strconv.Atoi(count); err != nil {
			t.Fatalf("commandstats: %q: %v", line, err)
		}
	}
	return found
}

// spentSince leaves out what asks for the counts.
func spentSince(before, after calls) calls {
	spent := calls{}
	for name, n := range after {
		if n > before[name] {
			spent[name] = n - before[name]
		}
	}
	delete(spent, "client|setinfo")
	spent["info"]--
	return spent
}

func (c calls) total() (n int) {
	for _, calls := range c {
		n += calls
	}
	return n
}

func (c calls) searches() (n int) {
	for name, calls := range c {
		if strings.HasPrefix(strings.ToUpper(name), "FT.") {
			n += calls
		}
	}
	return n
}

func (c calls) per(n int) string {
	var out strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(c), func(a, b string) int { return c[b] - c[a] }) {
		fmt.Fprintf(&out, "%8.2f %s\n", float64(c[name])/float64(n), name)
	}
	return out.String()
}
