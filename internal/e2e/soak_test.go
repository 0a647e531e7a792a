package e2e

import (
	"fmt"
	"testing"
	"time"

	"palimpsest/internal/testengine/clickhouseserver"
	"palimpsest/internal/testengine/redisserver"
)

// soakLimit is how soon after the last restart everything that was acknowledged
// before must be known.
const soakLimit = 15 * time.Second

// soakKills is how often a soak kills.
func soakKills() int {
	if full() {
		return 30
	}
	return 4
}

// TestP7SoakEngines kills NATS, the memory store and the audit log of six processes
// in turn while people speak. The processes have the settings that ship. After the
// last engine is back, everything is known soon, and equals the memory of an
// undisturbed process. With E2E_FULL there are 30 kills.
func TestP7SoakEngines(t *testing.T) {
	t.Parallel()
	const load = 20
	redis, house := redisserver.Launch(t), clickhouseserver.Own(t)
	c := startClusterOn(t, engines{redis.URL(), "pal", house.DSN("native", "palimpsest")}, 1)
	people := gather(c, load)
	speaking := people.speak()
	engines := []struct {
		name      string
		kill, run func()
	}{
		{"NATS", c.nats.kill, c.nats.begin},
		{"Redis", redis.Kill, redis.Start},
		{"ClickHouse", house.Kill, func() {}}, // its supervisor starts it
	}
	var back time.Time
	for n := range soakKills() {
		people.hear(load + n*7%load) // one to two seconds, or longer in an outage
		e := engines[n%len(engines)]
		e.kill()
		e.run()
		back = time.Now()
		all, refused := people.told()
		t.Logf("kill %d, of %s: %d acknowledged, %d errors", n+1, e.name, all, refused)
	}
	speaking.end()
	said, _ := people.told()
	c.settled(everything("default"), said)
	t.Logf("%d episodes are consolidated %v after the last restart", said, since(back))
	c.drained(said)
	took := since(back)
	t.Logf("%d episodes are known %v after the last restart", said, took)
	if took > soakLimit {
		t.Errorf("known after %v, want %v", took, soakLimit)
	}
	c.ready(200)
	c.wantAsOne(people.scripts, people.calm(), said)
}

// TestP7SoakProcess kills one process again and again while people speak, and
// starts it each time. Everything that was acknowledged is known soon after the
// last start. With E2E_FULL there are 30 kills.
func TestP7SoakProcess(t *testing.T) {
	t.Parallel()
	const users, each = 30, 25 // many more turns than kills need
	i := start(t, t.TempDir())
	all := scripts(users, longest)
	for n := range soakKills() {
		i.tellAll(all, each, i.kill)
		i.begin()
		t.Logf("kill %d", n+1)
	}
	back, said := time.Now(), 0
	for _, s := range all {
		said += s.next
	}
	atLeast(t, i.instance, said)
	took := since(back)
	t.Logf("%d episodes are known %v after the last start", said, took)
	if took > soakLimit {
		t.Errorf("known after %v, want %v", took, soakLimit)
	}
	for _, s := range all { // the last message of each may be stored unacknowledged
		s.turns = s.turns[:min(s.next+1, len(s.turns))]
	}
	i.tellAll(all, 0, nil)
	total := 0
	for _, s := range all {
		total += len(s.turns)
	}
	i.settled(everything("default"), total)
	for _, s := range all {
		wantSaid(t, i.instance, s)
	}
	if letters := i.buried(0); len(letters) > 0 {
		t.Errorf("dead letters: %+v", letters)
	}
}

// atLeast waits until so many episodes are consolidated, and nothing is pending.
// More may be stored than was acknowledged.
func atLeast(t testing.TB, i *instance, said int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d episodes are known", said), func() error {
		l, err := i.api.Ledger(t.Context(), everything("default"), false)
		if err != nil {
			return err
		}
		for _, a := range l.Totals {
			if a.Rule == "turn" && a.Pending == 0 && a.Accepted >= uint64(said) {
				return nil
			}
		}
		return fmt.Errorf("ledger %+v", l.Totals)
	})
}
