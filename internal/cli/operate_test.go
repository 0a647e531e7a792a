package cli

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
)

// A container's health check is the exit code.
func TestReadyIsTheExitCode(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]struct {
		status, code int
		says         string
	}{
		`{"ready":true,"checks":{"memory":{"ok":true,"latency_ms":1.5}}}`:           {http.StatusOK, exitOK, "1.5ms"},
		`{"ready":false,"checks":{"memory":{"ok":false,"error":"no such server"}}}`: {http.StatusServiceUnavailable, exitError, "memory: no such server"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(want.status)
			_, _ = w.Write([]byte(answer))
		}))
		t.Cleanup(srv.Close)
		code, out, complaint := callWith(t, "", nil, "--server", srv.URL, "ready")
		if code != want.code || !strings.Contains(out+complaint, want.says) {
			t.Errorf("%d, %q, %q; want %d, %q", code, out, complaint, want.code, want.says)
		}
	}
}

// The topology that is compared and applied is the configured one.
func TestTopologyHasTheConfiguredReplicas(t *testing.T) {
	t.Parallel()
	env := brokertest.Start(t)
	environ := []string{
		"NATS_URL=" + env.URL, "PALIMPSEST_NATS_NKEY_SEED=" + filepath.Join(env.Dir, broker.SeedFile), "PALIMPSEST_NATS_REPLICAS=3",
	}
	code, out, _ := callWith(t, "", environ, "topology", "diff")
	if code != exitError || !strings.Contains(out, "EPISODES replicas: want 3, have 1") {
		t.Errorf("%d, %q", code, out)
	}
	if code, out, complaint := callWith(t, "", environ[:2], "topology", "apply"); code != exitOK || !strings.Contains(out, "applied") {
		t.Errorf("%d, %q, %q", code, out, complaint)
	}
}
