package httpserver

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/internal/auth"
	"palimpsest/pkg/api"
)

func TestStatusTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	readiness := api.Readiness{Checks: map[string]api.Check{"memory": {Error: "away"}}}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	handler := Config{Auth: string(auth.Off)}.Status("v1", func(context.Context) api.Readiness { return readiness }, metrics)
	for _, c := range []struct {
		ready  bool
		path   string
		status int
		want   string
	}{
		{false, "/healthz", 200, `"version":"v1"`},
		{false, "/readyz", 503, `"error":"away"`},
		{true, "/readyz", 200, `"ready":true`},
		{false, "/metrics", 200, "up 1"},
		{false, "/v1/facts", 404, "query service"},
	} {
		readiness.Ready = c.ready
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil))
		if answer.Code != c.status || !strings.Contains(answer.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.path, answer.Code, answer.Body)
		}
	}
}

// TestP6MetricsAreOfOperators: metrics and the details of readiness go to this machine
// and to callers with the key, and to no others.
func TestP6MetricsAreOfOperators(t *testing.T) {
	t.Parallel()
	readiness := api.Readiness{Checks: map[string]api.Check{"memory": {Error: "10.0.0.7 is away"}}}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	const here, elsewhere = "127.0.0.1:999", "192.0.2.7:999"
	for name, c := range map[string]struct {
		config Config
		from   string
		header http.Header
		may    bool
	}{
		"this machine":                 {Config{Auth: "auto"}, here, nil, true},
		"this machine, required":       {Config{Auth: "required"}, here, nil, false},
		"another":                      {Config{Auth: "auto"}, elsewhere, nil, false},
		"another, no key is set":       {Config{Auth: "auto"}, elsewhere, http.Header{"Authorization": {"Bearer "}}, false},
		"another, off":                 {Config{Auth: "off"}, elsewhere, nil, true},
		"another, unprotected":         {Config{Unprotected: true}, elsewhere, nil, true},
		"another, bearer":              {Config{Auth: "auto", MetricsKey: "k"}, elsewhere, http.Header{"Authorization": {"Bearer k"}}, true},
		"another, header of ours":      {Config{Auth: "required", MetricsKey: "k"}, elsewhere, http.Header{"X-Api-Key": {"k"}}, true},
		"another, the wrong key":       {Config{Auth: "auto", MetricsKey: "k"}, elsewhere, http.Header{"Authorization": {"Bearer kk"}}, false},
		"another, no key":              {Config{Auth: "auto", MetricsKey: "k"}, elsewhere, nil, false},
		"this machine, the wrong key":  {Config{Auth: "required", MetricsKey: "k"}, here, http.Header{"X-Api-Key": {"x"}}, false},
		"an address that is not one":   {Config{Auth: "auto"}, "@", nil, false},
		"this machine, IPv6":           {Config{Auth: "auto"}, "[::1]:999", nil, true},
		"this machine, mapped to IPv6": {Config{Auth: "auto"}, "[::ffff:127.0.0.1]:999", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := c.config.Status("v1", func(context.Context) api.Readiness { return readiness }, metrics)
			ask := func(path string) (int, string) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
				r.RemoteAddr = c.from
				if c.header != nil {
					r.Header = c.header
				}
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, r)
				return answer.Code, answer.Body.String()
			}
			if code, body := ask("/metrics"); (code == http.StatusOK) != c.may || !c.may && (code != http.StatusUnauthorized || strings.Contains(body, "up")) {
				t.Errorf("/metrics: %d %s", code, body)
			}
			if code, body := ask("/readyz"); code != http.StatusServiceUnavailable || strings.Contains(body, "10.0.0.7") != c.may {
				t.Errorf("/readyz: %d %s", code, body)
			}
			if code, _ := ask("/healthz"); code != http.StatusOK {
				t.Errorf("/healthz: %d", code)
			}
		})
	}
}
