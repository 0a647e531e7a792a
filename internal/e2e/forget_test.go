package e2e

import (
	"slices"
	"strings"
	"testing"

	"palimpsest/internal/clickhousetest"
	"palimpsest/internal/redisservertest"
)

// TestP1RedisForgetsUnderTwelveProcesses brings an older copy of the memory store back
// while twelve processes work on it and are spoken to, and then empties it: what
// was acknowledged has its place again, and what is known is what one process
// knows that nobody disturbs.
func TestP1RedisForgetsUnderTwelveProcesses(t *testing.T) {
	t.Parallel()
	server := redisservertest.Launch(t)
	c := startClusterOn(t, engines{server.URL(), "pal", clickhousetest.DSN(t)}, 2, soon...)
	const users, turns, part = 4, 60, 10
	disturbed, calm := scripts(users, turns), scripts(users, turns)
	tellUpTo(c.instance, disturbed, part, func() {})
	c.settled(everything("default"), users*part)
	restore := server.Copy()
	tellUpTo(c.instance, disturbed, 2*part, func() {})
	c.settled(everything("default"), users*2*part)
	tellUpTo(c.instance, disturbed, 3*part, func() {
		server.Kill()
		restore()
		server.Start()
	})
	tellUpTo(c.instance, disturbed, 4*part, func() {})
	c.settled(everything("default"), users*4*part)
	tellUpTo(c.instance, disturbed, 5*part, func() { server.Do("FLUSHALL") })
	tellUpTo(c.instance, disturbed, turns, func() {})
	c.settled(everything("default"), users*turns)

	c.wantAsOne(disturbed, calm, users*turns)
	if !slices.ContainsFunc(c.of("ingest"), func(m *member) bool {
		return strings.Contains(m.stderr.String(), "what was said is whole in the memory store")
	}) {
		t.Error("no ingest noticed that anything was lost")
	}
	wantReplayed(t, c.instance, everything("default"))
}
