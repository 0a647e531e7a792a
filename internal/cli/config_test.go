package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"

	"palimpsest/internal/terminal"
	"palimpsest/internal/testengine/brokertest"
)

// TestCheckReachesWhatIsNamed: each server that cannot be reached is named with
// the place of its setting, and no secret.
func TestCheckReachesWhatIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.yaml")
	text := "data: " + filepath.Dir(path) + "\nmemory: redis://:hunter2@127.0.0.1:1\nnats:\n  url: nats://me:hunter2@127.0.0.1:1\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"PALIMPSEST_AUDIT=clickhouse://me:hunter2@127.0.0.1:1/p"}
	code, out, complaint := callWith(t, "", environ, "--config", path, "config", "check")
	if code != exitError || out != "" || strings.Contains(complaint, "hunter2") {
		t.Errorf("code %d, output %q, complaint %q", code, out, complaint)
	}
	for _, want := range []string{
		path + ":2: memory: redis://:xxxxx@127.0.0.1:1 cannot be reached: connection refused",
		path + ":4: nats.url: nats://me:xxxxx@127.0.0.1:1 cannot be reached: connection refused",
		"env PALIMPSEST_AUDIT: audit: clickhouse://me:xxxxx@127.0.0.1:1/p cannot be reached: connection refused",
	} {
		if !strings.Contains(complaint, want) {
			t.Errorf("complaint %q lacks %q", complaint, want)
		}
	}
	if code, out, complaint := callWith(t, "", environ, "--config", path, "config", "check", "--offline"); code != 0 || out != "ok\n" {
		t.Errorf("offline: code %d, output %q, complaint %q", code, out, complaint)
	}
	for name, c := range map[string]struct {
		options natsserver.Options
		want    string
	}{
		"with JetStream":    {natsserver.Options{JetStream: true, StoreDir: t.TempDir()}, ""},
		"without JetStream": {natsserver.Options{}, "broker: no JetStream: the server runs without JetStream"},
	} {
		c.options.Host, c.options.Port, c.options.NoSigs, c.options.NoLog = "127.0.0.1", natsserver.RANDOM_PORT, true, true
		url := brokertest.Serve(t, &c.options).ClientURL()
		there := []string{"NATS_URL=" + url, "PALIMPSEST_DATA=" + t.TempDir()}
		code, out, complaint := callWith(t, "", there, "config", "check")
		if c.want == "" {
			if code != 0 || out != "ok\n" {
				t.Errorf("%s: code %d, output %q, complaint %q", name, code, out, complaint)
			}
			continue
		}
		for _, args := range [][]string{{"config", "check"}, {"up", "--data", t.TempDir(), "--http", "127.0.0.1:0"}} {
			code, _, complaint := callWith(t, "", there, args...)
			if want := "palimpsest: env NATS_URL: nats.url: " + url + ": " + c.want; code != exitError || !strings.HasPrefix(complaint, want) {
				t.Errorf("%v %s: code %d, complaint %q, want %q", args, name, code, complaint, want)
			}
		}
	}
}

// TestCheckRefusesARedisWithoutSearch, and so does a start.
func TestCheckRefusesARedisWithoutSearch(t *testing.T) {
	t.Parallel()
	plain := miniredis.RunT(t)
	environ := []string{"REDIS_URL=redis://" + plain.Addr()}
	want := "palimpsest: env REDIS_URL: memory: redis://" + plain.Addr() + ": the server has no Query Engine (RediSearch), which Redis 8 has\n"
	for _, args := range [][]string{
		{"config", "check"},
		{"up", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"},
	} {
		if code, _, complaint := callWith(t, "", environ, args...); code != exitError || complaint != want {
			t.Errorf("%v: code %d, complaint %q, want %q", args, code, complaint, want)
		}
	}
}

// TestStartNamesItsEngines and what chose them, also where one cannot be reached.
func TestStartNamesItsEngines(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	out, write := io.Pipe()
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"up", "--data", dir, "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"}, terminal.Terminal{
			In: strings.NewReader(""), Out: write, Err: io.Discard, Environ: []string{"REDIS_URL=redis://:hunter2@127.0.0.1:1", "PALIMPSEST_AUDIT=sqlite"},
		})
	}()
	lines := bufio.NewScanner(out)
	for _, want := range []string{
		"starts.", "broker     " + dir + "/nats   (default)", "memory     redis://:xxxxx@127.0.0.1:1   (env REDIS_URL)",
		"audit log  " + dir + "/audit.db   (env PALIMPSEST_AUDIT)",
	} {
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), want) {
			t.Errorf("line %q, want %q", lines.Text(), want)
		}
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	defer out.Close()
	if code := <-done; code != exitError {
		t.Errorf("code %d", code)
	}
}

// What only a running Palimpsest can answer says how to name one.
func TestTopologyOfNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, out, complaint := callWith(t, "", nil, "topology", "diff", "--data", dir)
	want := fmt.Sprintf("palimpsest: data: no Palimpsest runs on %s: name its directory with --data, or a NATS of your own by nats.url", dir)
	if code != exitError || out != "" || !strings.HasPrefix(complaint, want) {
		t.Errorf("code %d, output %q, complaint %q", code, out, complaint)
	}
}
