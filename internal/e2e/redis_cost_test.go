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

	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/internal/testengine/redisserver"
	"palimpsest/internal/topology"
	"palimpsest/pkg/scope"
)

// The limits of what Redis is asked. An episode of a new scope takes about 32 commands
// in one process and 34 in six, 13 of which write hashes; one of a scope with history 50
// and 52. On a busy machine, the commands of clocks count for more.
const (
	commandsPerEpisode = 36 // as the server counts them, those of scripts included
	commandsOfKnown    = 54 // of a scope with history
	searchesPerEpisode = 2
	commandsIdle       = 5 // a second
)

// TestRedisCommands counts the Redis commands for episodes of one statement, in new
// scopes and in scopes with history, and those of idle processes, in one process and in six.
func TestRedisCommands(t *testing.T) {
	t.Parallel()
	t.Run("one process", func(t *testing.T) {
		t.Parallel()
		launched, nats := redisserver.Launch(t), startNATS(t)
		config := filepath.Join(t.TempDir(), "palimpsest.yaml")
		text := fmt.Sprintf("memory: %s\nnats:\n  url: %s\n", launched.URL(), nats.url())
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		checkCommands(t, launched, start(t, t.TempDir(), "--config", config).instance)
	})
	t.Run("six processes", func(t *testing.T) {
		t.Parallel()
		launched := redisserver.Launch(t)
		c := startClusterOn(t, engines{redis: launched.URL(), namespace: "cost", clickhouse: clickhouseserver.DSN(t)}, 1)
		checkCommands(t, launched, c.instance)
	})
}

// checkCommands publishes episodes, each once the one before is in AUDIT: one of each
// user, and then more of some of them.
func checkCommands(t *testing.T, launched *redisserver.Server, c *instance) {
	t.Helper()
	const episodes = 1000
	options, err := goredis.ParseURL(launched.URL())
	if err != nil {
		t.Fatal(err)
	}
	server := goredis.NewClient(options)
	t.Cleanup(func() { _ = server.Close() })

	c.t = t
	c.one("warm", "I live in Oslo.", 1)
	effects, scopes := uint64(1), episodes
	check := func(what string, most int, said ...string) {
		before := commandStats(t, server)
		for n := range scopes {
			for _, text := range said {
				effects++
				c.one(fmt.Sprintf("user%04d", n), text, effects)
			}
		}
		c.drainedStreams()
		spent, count := spentSince(before, commandStats(t, server)), scopes*len(said)
		all, searches := spent.total(), spent.searches()
		t.Logf("%d episodes of %s scopes: %.1f commands each, %.2f of them searches\n%s", count, what, float64(all)/float64(count),
			float64(searches)/float64(count), spent.per(count))
		if all > most*count {
			t.Errorf("%.1f commands an episode of %s scopes, want at most %d", float64(all)/float64(count), what, most)
		}
		if searches > searchesPerEpisode*count {
			t.Errorf("%.2f searches an episode of %s scopes, want at most %d", float64(searches)/float64(count), what, searchesPerEpisode)
		}
	}
	check("new", commandsPerEpisode, "I live in Oslo.")
	scopes = episodes / 5
	check("known", commandsOfKnown, "I work at Acme.", "I have a dog named Rex.", "I am allergic to peanuts.", "I live in Bergen.", "I play the piano.")

	const watched = 16 * time.Second         // a whole number of the intervals of clocks
	settle := time.NewTimer(5 * time.Second) // the last embedding is stored
	<-settle.C
	var idle calls
	for range 2 { // a sweep, which reads the scopes of the burst once, falls into one of them
		before := commandStats(t, server)
		settle.Reset(watched)
		<-settle.C
		if spent := spentSince(before, commandStats(t, server)); idle == nil || spent.total() < idle.total() {
			idle = spent
		}
	}
	t.Logf("idle: %.1f commands a second\n%s", float64(idle.total())/watched.Seconds(), idle.per(1))
	if idle.total() > commandsIdle*int(watched.Seconds()) {
		t.Errorf("%.1f commands a second while nothing happens, want at most %d", float64(idle.total())/watched.Seconds(), commandsIdle)
	}
}

// one publishes an episode, and waits until AUDIT has so many messages.
func (i *instance) one(user, said string, effects uint64) {
	i.t.Helper()
	i.publish(scope.Scope{Project: scope.DefaultProject, User: user, Agent: "assistant", Session: "s1"}, "",
		map[string]any{"role": "user", "content": said})
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
