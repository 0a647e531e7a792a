package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/broker/brokertest"
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
	code, out, complaint := call(t, "", environ, "--config", path, "config", "check")
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
	if code, out, complaint := call(t, "", environ, "--config", path, "config", "check", "--offline"); code != 0 || out != "ok\n" {
		t.Errorf("offline: code %d, output %q, complaint %q", code, out, complaint)
	}
	env := brokertest.Start(t)
	there := []string{"PALIMPSEST_NATS_URL=" + env.URL, "PALIMPSEST_DATA=" + t.TempDir()}
	if code, out, complaint := call(t, "", there, "config", "check"); code != 0 || out != "ok\n" {
		t.Errorf("a server that is there: code %d, output %q, complaint %q", code, out, complaint)
	}
}

// What only a running Palimpsest can answer says how to name one.
func TestTopologyOfNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, out, complaint := call(t, "", nil, "topology", "diff", "--data", dir)
	want := fmt.Sprintf("palimpsest: data: no Palimpsest runs on %s: name its directory with --data, or a NATS of your own by nats.url", dir)
	if code != exitError || out != "" || !strings.HasPrefix(complaint, want) {
		t.Errorf("code %d, output %q, complaint %q", code, out, complaint)
	}
}
