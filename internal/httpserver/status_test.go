package httpserver

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"palimpsest/pkg/api"
)

func TestStatusTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	readiness := api.Readiness{Checks: map[string]api.Check{"memory": {Error: "away"}}}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	handler := Status("v1", func(context.Context) api.Readiness { return readiness }, metrics)
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
