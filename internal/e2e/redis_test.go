package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/testengine/redisserver"
)

// onRedis runs Palimpsest on a Redis of the test's own.
func onRedis(t *testing.T) (*process, *redisserver.Server) {
	t.Helper()
	server := redisserver.Launch(t)
	config := filepath.Join(t.TempDir(), "palimpsest.yaml")
	if err := os.WriteFile(config, []byte("memory: "+server.URL()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, t.TempDir(), "--config", config), server
}

// TestP7RedisComesBackWithLess: a Redis that was restored from an older copy, or
// emptied, while Palimpsest runs is repaired without an operator: all episodes and
// facts are there, and new ones follow them.
func TestP7RedisComesBackWithLess(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(server *redisserver.Server, restore func()){
		"an older copy": func(server *redisserver.Server, restore func()) {
			server.Kill()
			restore()
			server.Start()
		},
		"emptied": func(server *redisserver.Server, _ func()) { server.Do("FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const users, turns = 12, 8
			i, server := onRedis(t)
			i.tellAll(scripts(users, turns/4), 0, nil)
			i.settled(everything("default"), users*turns/4)
			restore := server.Copy()
			i.tellAll(scripts(users, turns/2), 0, nil)
			i.settled(everything("default"), users*turns/2)
			want := i.remains()
			forget(server, restore)
			eventually(t, "the loss to be mended", func() error {
				_, err := i.api.Ready(t.Context())
				return err
			})
			if diff := cmp.Diff(want, i.remains()); diff != "" {
				t.Errorf("after the loss (-before +after):\n%s", diff)
			}
			i.tellAll(scripts(users, turns), 0, nil)
			i.settled(everything("default"), users*turns)
			compared(i)
		})
	}
}

// TestP7RedisForgetsWhileItIsSpokenTo: messages of that time are not lost either.
func TestP7RedisForgetsWhileItIsSpokenTo(t *testing.T) {
	t.Parallel()
	const users, turns = 12, 24
	i, server := onRedis(t)
	all := scripts(users, turns)
	i.tellAll(scripts(users, turns/4), 0, nil)
	restore := server.Copy()
	i.tellAll(all, users*turns/2, func() {
		server.Kill()
		restore()
		server.Start()
	})
	i.tellAll(all, 0, nil)
	i.settled(everything("default"), users*turns)
	compared(i)
}

// compared stops the instance and holds its store against what the streams make
// of it.
func compared(i *process) {
	i.t.Helper()
	if err := i.stop(); err != nil {
		i.t.Fatal(err)
	}
	out := i.rebuildRedis(0, "--check")
	if out.Live == "" || out.Live != out.Rebuilt || out.Moved != 0 || out.Switched {
		i.t.Errorf("check: %+v", out)
	}
}

// rebuildRedis runs the command with the instance's configuration.
func (i *process) rebuildRedis(code int, args ...string) (out rebuilt) {
	i.t.Helper()
	line := append([]string{"--json", "rebuild", "--data", i.data}, i.args...)
	stdout, stderr, exit := run(i.t, nil, append(line, args...)...)
	if exit != code {
		i.t.Fatalf("rebuild %v: exit %d, want %d: %s; it said %s", args, exit, code, stdout, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		i.t.Fatalf("rebuild says %q: %v; %s", stdout, err, stderr)
	}
	return out
}

// TestP5RebuildRedis: the memory in Redis that is rebuilt from the streams equals
// the earlier one, and is in use afterwards.
func TestP5RebuildRedis(t *testing.T) {
	t.Parallel()
	i, server := onRedis(t)
	i.lives()
	want := i.remains()
	if err := i.stop(); err != nil {
		t.Fatal(err)
	}
	digest := func() string {
		stdout, stderr, code := run(t, nil, append([]string{"digest", "--data", i.data}, i.args...)...)
		if code != 0 {
			t.Fatalf("digest: exit %d: %s", code, stderr)
		}
		return strings.TrimSpace(stdout)
	}
	before := digest()
	out := i.rebuildRedis(0)
	if !out.Switched || out.Live != before || out.Rebuilt != before || out.Moved != 0 {
		t.Errorf("rebuild: %+v, the digest was %s", out, before)
	}
	if after := digest(); after != before {
		t.Errorf("digest %s, before %s", after, before)
	}
	if g := server.Do("HGET", "pal:witness", "generation"); g != "2" {
		t.Errorf("generation %v is in use", g)
	}
	if keys, _ := server.Do("KEYS", "pal:g1:*").([]any); len(keys) != 0 {
		t.Errorf("%d keys of the generation before are left", len(keys))
	}
	i.begin()
	if diff := cmp.Diff(want, i.remains()); diff != "" {
		t.Errorf("after the rebuild (-before +after):\n%s", diff)
	}
}

// TestP5RebuildBesideServices: on a remote broker the memory is rebuilt while the
// services run, and they continue on the new one.
func TestP5RebuildBesideServices(t *testing.T) {
	t.Parallel()
	const users, turns = 4, 24
	c := startCluster(t, 1, soon...)
	disturbed, calm := scripts(users, turns), scripts(users, turns)
	tellUpTo(c.instance, disturbed, turns/2, func() {})
	c.settled(everything("default"), users*turns/2)
	stdout, stderr, code := run(t, nil, "--json", "--config", c.config, "rebuild")
	var out rebuilt
	if err := json.Unmarshal([]byte(stdout), &out); code != 0 || err != nil {
		t.Fatalf("rebuild: exit %d, %v: %s; it said %s", code, err, stdout, stderr)
	}
	if !out.Switched || out.Episodes != users*turns/2 || out.Live != out.Rebuilt {
		t.Errorf("rebuild: %+v", out)
	}
	tellUpTo(c.instance, disturbed, turns, func() {})
	c.settled(everything("default"), users*turns)
	c.wantAsOne(disturbed, calm, users*turns)
}
