package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/internal/testengine/redisserver"
)

// TestP1RedisForgetsUnderTwelveProcesses restores an older copy of the memory store
// while twelve processes work on it under load, and then empties it: all
// acknowledged episodes are there again, the facts equal those of one undisturbed
// process, and the digest is that of a rebuilt memory.
//
// With E2E_FULL the copy is 10 s old, at 200 episodes a second.
func TestP1RedisForgetsUnderTwelveProcesses(t *testing.T) {
	t.Parallel()
	age, load := time.Second, 20
	if full() {
		age, load = 10*time.Second, 200
	}
	server := redisserver.Launch(t, "--auto-aof-rewrite-percentage", "0") // the copied file stays in place
	c := startClusterOn(t, engines{server.URL(), "pal", clickhouseserver.DSN(t)}, 2, soon...)
	people := gather(c, load)
	for _, loss := range []struct {
		comes string
		back  func(restore func())
	}{
		{"an older copy", func(restore func()) {
			server.Kill()
			restore()
			server.Start()
		}},
		{"nothing", func(func()) { server.Do("FLUSHALL") }},
	} {
		speaking := people.speak()
		people.hear(load * int(age/time.Second))
		restore := server.Copy()
		copied, _ := people.told()
		people.hear(load * int(age/time.Second))
		said, _ := people.told()
		loss.back(restore)
		back := time.Now()
		speaking.end()
		all, _ := people.told()
		c.settled(everything("default"), all)
		t.Logf("Redis came back with %s, %d episodes behind it: done with all %d after %v", loss.comes, said-copied, all, since(back))
	}
	all, _ := people.told()
	c.wantAsOne(people.scripts, people.calm(), all)
	if !slices.ContainsFunc(c.of("ingest"), func(m *member) bool {
		return strings.Contains(m.stderr.String(), "the memory store has all episodes again")
	}) {
		t.Error("no ingest noticed that anything was lost")
	}
	c.wantDigest()
}

// wantDigest holds the memory store against what the streams make of it.
func (c *cluster) wantDigest() {
	c.t.Helper()
	stdout, stderr, code := run(c.t, nil, "--json", "--config", c.config, "rebuild", "--check")
	var out rebuilt
	if err := json.Unmarshal([]byte(stdout), &out); code != 0 || err != nil {
		c.t.Fatalf("rebuild --check: exit %d, %v: %s; it said %s", code, err, stdout, stderr)
	}
	if out.Live == "" || out.Live != out.Rebuilt || out.Moved != 0 || out.Switched {
		c.t.Errorf("rebuild --check: %+v", out)
	}
}
