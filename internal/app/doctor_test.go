package app

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/doctor"
	"palimpsest/internal/terminal"
	"palimpsest/internal/version"
)

// examined returns the findings by check.
func examined(t *testing.T, data string, environ []string, server string) map[string]doctor.Finding {
	t.Helper()
	inv := NewInvocation(t.Context(), terminal.Terminal{Environ: environ}, Flags{Server: server})
	out := map[string]doctor.Finding{}
	for _, f := range inv.Examine(data) {
		out[f.Check] = f
	}
	return out
}

// wantFinding fails unless a check has that result and its text has those words.
func wantFinding(t *testing.T, found map[string]doctor.Finding, check string, ok bool, words string) {
	t.Helper()
	if f := found[check]; f.OK != ok || !strings.Contains(f.Text, words) {
		t.Errorf("%s: %+v, want ok %v and %q", check, f, ok, words)
	}
}

// free returns an address on which no server listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func listens(http, nats string) []string {
	return []string{"PALIMPSEST_HTTP_LISTEN=" + http, "PALIMPSEST_NATS_LISTEN=" + nats}
}

func TestExamineWhatIsStopped(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none yet")
	found := examined(t, dir, listens(free(t), free(t)), "")
	if len(found) != 11 {
		t.Errorf("%d checks: %+v", len(found), found)
	}
	for check, words := range map[string]string{
		"version": version.String(), "config": "valid", "http": "is free", "nats": "is free", "data": "does not exist yet",
		"embedder": "dimensions", "memory": "does not exist yet", "audit": "does not exist yet", "streams": "no Palimpsest runs", "clock": "T", "llm": "rule packs",
	} {
		wantFinding(t, found, check, true, words)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the examination made the directory: %v", err)
	}
}

func TestExamineWhatRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, stop := open(t, dir)
	defer stop()
	nats := strings.TrimPrefix(h.streams.ClientURL(), "nats://")
	found := examined(t, dir, listens(strings.TrimPrefix(h.http.URL(), "http://"), nats), "")
	for check, words := range map[string]string{
		"nats": "answers: NATS 2.", "data": "is writable, ", "memory": "memory.db, ", "audit": "audit.db, ", "streams": "streams as declared",
	} {
		wantFinding(t, found, check, true, words)
	}
}

// TestExamineOtherPrograms checks that a port of another program is a failure.
func TestExamineOtherPrograms(t *testing.T) {
	t.Parallel()
	speaks := func(text string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, text)
				_ = conn.Close()
			}
		}()
		return l.Addr().String()
	}
	found := examined(t, t.TempDir(), listens(speaks("SSH-2.0\r\n"), speaks("220 mail\r\n")), "")
	wantFinding(t, found, "http", false, "is taken by another program")
	wantFinding(t, found, "nats", false, "is taken by another program")
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	found = examined(t, t.TempDir(), listens(free(t), free(t)), web.URL)
	wantFinding(t, found, "http", false, "is taken by another program")
	found = examined(t, t.TempDir(), listens(free(t), free(t)), free(t))
	wantFinding(t, found, "http", false, "connection refused")
}

// TestExamineAnotherServer: one of another version, whose clock is off and which is
// not ready.
func TestExamineAnotherServer(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"ready":false,"checks":{"memory":{"ok":false,"error":"is away"}}}`)
			return
		}
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		_, _ = io.WriteString(w, `{"version":"v9.9.9"}`)
	}))
	t.Cleanup(srv.Close)
	found := examined(t, t.TempDir(), listens(free(t), free(t)), srv.URL)
	wantFinding(t, found, "version", false, "the server is v9.9.9")
	wantFinding(t, found, "http", false, "memory: is away")
	wantFinding(t, found, "clock", false, "differs by -1h0m")
}

func TestExamineFailures(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	away := []string{"REDIS_URL=redis://:hunter2@127.0.0.1:1", "NATS_URL=nats://127.0.0.1:1", "CLICKHOUSE_URL=clickhouse://127.0.0.1:1/p"}
	found := examined(t, file, append(away, listens(free(t), free(t))...), "")
	for check, words := range map[string]string{
		"nats": "nats://127.0.0.1:1 cannot be reached", "memory": "redis://:xxxxx@127.0.0.1:1 cannot be reached",
		"audit": "127.0.0.1:1/p cannot be reached", "streams": "connection refused",
	} {
		wantFinding(t, found, check, false, words)
	}
	wantFinding(t, found, "data", true, "not used")
	wantFinding(t, examined(t, file, listens(free(t), free(t)), ""), "data", false, "is not a directory")
	found = examined(t, file, []string{"PALIMPSEST_LOG_LEVEL=loud"}, "")
	wantFinding(t, found, "config", false, "log.level")
	if len(found) != 2 {
		t.Errorf("%+v", found)
	}
}
