package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/terminal"
)

// callWith runs one command with an environment of its own.
func callWith(t *testing.T, in string, environ []string, args ...string) (code int, out, complaint string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, terminal.Terminal{In: strings.NewReader(in), Out: &o, Err: &e, Environ: environ})
	return code, o.String(), e.String()
}

func TestRefusalsOfProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	unknown, broken := write("unknown.yaml", "foo: 1\nhttp:\n  port: 3\n"), write("broken.yaml", "a: [\nb")
	file := write("file", "")
	for name, c := range map[string]struct {
		args, environ []string
		code          int
		want          string
	}{
		"no such command":    {args: []string{"nosuch"}, code: exitUsage, want: "nosuch"},
		"unknown role":       {args: []string{"publish", "--role", "robot"}, code: exitUsage, want: "--role"},
		"unknown keys":       {args: []string{"--config", unknown, "config", "check"}, code: exitError, want: `unknown.yaml:1: unknown key "foo"; `},
		"broken file":        {args: []string{"--config", broken, "config", "check"}, code: exitError, want: "broken.yaml:1: "},
		"no file":            {args: []string{"--config", filepath.Join(dir, "no"), "config", "check"}, code: exitError, want: "no such file"},
		"unknown variable":   {args: []string{"config", "check"}, environ: []string{"PALIMPSEST_FOO=1"}, code: exitError, want: "PALIMPSEST_FOO"},
		"bad variable":       {args: []string{"config", "check"}, environ: []string{"PALIMPSEST_QUERY_WAIT=soon"}, code: exitError, want: "query.wait"},
		"bad level":          {args: []string{"config", "check"}, environ: []string{"PALIMPSEST_LOG_LEVEL=loud"}, code: exitError, want: "log.level"},
		"no model there":     {args: []string{"config", "check"}, environ: []string{"PALIMPSEST_EMBEDDER_MODEL=file://" + t.TempDir()}, code: exitError, want: "model.safetensors"},
		"no such model":      {args: []string{"config", "check"}, environ: []string{"PALIMPSEST_EMBEDDER_MODEL=magic"}, code: exitError, want: "embedder.model"},
		"backend of another": {args: []string{"up"}, environ: []string{"PALIMPSEST_MEMORY=postgres://u:hunter2@x"}, code: exitError, want: "xxxxx@x\" is neither sqlite nor"},
		"two credentials":    {args: []string{"up", "--data", t.TempDir()}, environ: []string{"NATS_URL=nats://127.0.0.1:1", "PALIMPSEST_NATS_CREDS=a", "PALIMPSEST_NATS_NKEY_SEED=b"}, code: exitError, want: "nats: credentials"},
		"many replicas":      {args: []string{"config", "check"}, environ: []string{"PALIMPSEST_NATS_REPLICAS=6"}, code: exitError, want: "nats: replicas"},
		"rebuild of nothing": {args: []string{"rebuild"}, environ: []string{"REDIS_URL=redis://:hunter2@127.0.0.1:1"}, code: exitError, want: "holds no streams to build from"},
		"digest of nobody":   {args: []string{"digest", "--data", "."}, environ: []string{"REDIS_URL=redis://:hunter2@127.0.0.1:1"}, code: exitError, want: "connection refused"},
		"data is a file":     {args: []string{"up", "--data", file}, code: exitError, want: "is not a directory"},
		"data below a file":  {args: []string{"up", "--data", filepath.Join(file, "x")}, code: exitError, want: "data: "},
		"no port":            {args: []string{"up", "--data", t.TempDir(), "--nats", "x"}, code: exitError, want: "nats.listen"},
		"unknown auth":       {args: []string{"up", "--data", t.TempDir(), "--http", ":0"}, environ: []string{"PALIMPSEST_HTTP_AUTH=perhaps"}, code: exitError, want: "http.auth"},
		"no broker answers":  {args: []string{"publish", "--user", "x", "--nats", "nats://127.0.0.1:1"}, code: exitError, want: "is Palimpsest running?"},
		"a file for several": {args: []string{"ingest"}, environ: []string{"PALIMPSEST_MEMORY=sqlite"}, code: exitError, want: `memory: "sqlite" belongs to one process`},
		"a log for several":  {args: []string{"consolidator"}, environ: []string{"PALIMPSEST_AUDIT=sqlite"}, code: exitError, want: `audit: "sqlite" belongs to one process`},
		"streams of one":     {args: []string{"decider"}, environ: []string{"PALIMPSEST_NATS_URL=embedded"}, code: exitError, want: `nats.url: "embedded" belongs to one process`},
		"auth and none":      {args: []string{"query"}, environ: []string{"PALIMPSEST_HTTP_AUTH=required", "PALIMPSEST_HTTP_UNPROTECTED=true"}, code: exitError, want: "http.unprotected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, complaint := callWith(t, "", c.environ, c.args...)
			if code != c.code || !strings.Contains(complaint, c.want) || out != "" && !strings.HasPrefix(out, "Palimpsest ") {
				t.Errorf("code %d, output %q, complaint %q; want code %d, %q", code, out, complaint, c.code, c.want)
			}
			lines := 1
			if c.code == exitUsage {
				lines = 2 // with the hint
			}
			if strings.Count(complaint, "\n") != lines {
				t.Errorf("complaint %q is not of %d lines", complaint, lines)
			}
		})
	}
}

// up runs everything over a data directory until stop is called.
func up(t *testing.T, data string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"up", "--data", data, "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"}, terminal.Terminal{
			In: strings.NewReader(""), Out: write, Err: io.Discard,
		})
		_ = write.Close()
	}()
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasSuffix(lines.Text(), "is ready.") {
	}
	if lines.Err() != nil || lines.Text() == "" {
		t.Fatal("it ended before it was ready")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return func() {
		cancel()
		if code := <-ended; code != exitOK {
			t.Errorf("it ended with code %d", code)
		}
	}
}

// TestTakenIsToldInTheUsersWords: what a second instance meets names the
// setting and its value, and nothing of where it was found.
func TestTakenIsToldInTheUsersWords(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	address := taken.Addr().String()
	held := t.TempDir()
	defer up(t, held)()
	for want, args := range map[string][]string{
		"palimpsest: data: " + held + " is in use by another process\n":      {"--data", held, "--http", "127.0.0.1:0", "--nats", "127.0.0.1:0"},
		"palimpsest: http.listen: " + address + ": address already in use\n": {"--data", t.TempDir(), "--http", address, "--nats", "127.0.0.1:0"},
		"palimpsest: nats.listen: " + address + ": address already in use\n": {"--data", t.TempDir(), "--http", "127.0.0.1:0", "--nats", address},
	} {
		expected := exitError
		if strings.Contains(want, held) {
			expected = exitInUse
		}
		code, _, complaint := callWith(t, "", nil, append([]string{"up"}, args...)...)
		if code != expected || complaint != want {
			t.Errorf("code %d, complaint %q, want %q", code, complaint, want)
		}
	}
}

func TestInterruptedCommandSaysSo(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, complaint bytes.Buffer
	code := run(ctx, []string{"--server", server.URL, "ledger", "--user", "x"}, terminal.Terminal{In: strings.NewReader(""), Out: &out, Err: &complaint})
	if code != exitError || complaint.String() != "palimpsest: interrupted\n" {
		t.Errorf("code %d, complaint %q", code, complaint.String())
	}
}

func TestEffectiveConfiguration(t *testing.T) {
	t.Parallel()
	environ := []string{
		"PALIMPSEST_PIPELINE_CONCURRENCY=200", "PALIMPSEST_INGEST_MAX_CONTENT=1000", "REDIS_URL=redis://u:hunter2@x",
		"NATS_URL=nats://127.0.0.1:1", "PALIMPSEST_NATS_URL=nats://127.0.0.1:2",
	}
	code, out, complaint := callWith(t, "", environ, "--json", "config", "print")
	if code != exitOK {
		t.Fatal(complaint)
	}
	var all []struct{ Key, Value, Origin string }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range all {
		got[s.Key] = s.Value + " " + s.Origin
	}
	for key, want := range map[string]string{
		"pipeline.concurrency":   "200 env PALIMPSEST_PIPELINE_CONCURRENCY",
		"pipeline.hold":          "400 default", // follows from the one above
		"ingest.max_content":     "1000 env PALIMPSEST_INGEST_MAX_CONTENT",
		"scheduler.session_idle": "30m0s default",
		"memory":                 "redis://u:xxxxx@x env REDIS_URL",
		"audit":                  "sqlite embedded.yaml:6",
		"nats.url":               "nats://127.0.0.1:2 env PALIMPSEST_NATS_URL",
	} {
		if got[key] != want {
			t.Errorf("%s = %q, want %q", key, got[key], want)
		}
	}
	for _, optional := range []string{
		"nats.creds", "nats.nkey_seed", "nats.tls.ca", "nats.tls.cert", "nats.tls.key", "telemetry.otlp.endpoint", "http.hosts", "http.origins", "http.metrics_key",
		"nats.episodes_max_age", "nats.episodes_max_bytes", "nats.audit_max_age", "nats.audit_max_bytes", "clickhouse.cluster", "clickhouse.retention", "embedder.base_url", "embedder.key", "embedder.dimensions",
	} {
		if got[optional] != " default" && got[optional] != "0s default" && got[optional] != "0 default" {
			t.Errorf("%s = %q", optional, got[optional])
		}
		delete(got, optional)
	}
	for _, off := range []string{
		"query.search.min_score", "query.search.diversity",
		"http.limits.rate", "http.limits.burst", "http.limits.daily", "http.limits.max_body",
	} {
		if got[off] != "0 default" {
			t.Errorf("%s = %q", off, got[off])
		}
		delete(got, off)
	}
	for key, value := range got {
		if strings.HasPrefix(key, "llm.") {
			continue // no model is configured
		}
		if strings.HasPrefix(value, "0 ") || strings.HasPrefix(value, "0s ") || strings.HasPrefix(value, " ") {
			t.Errorf("%s = %q shows no effective value", key, value)
		}
	}
}
