package query

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"palimpsest/internal/telemetry"
)

// The log of a failed request names its trace.
func TestFailuresNameTheirTrace(t *testing.T) {
	t.Parallel()
	logs := &buffer{}
	r := newRig(t, func(_ *Config, d *Deps) { d.Logger = telemetry.DefaultLog().New(logs) })
	r.store.fail(errDown)
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2},
	}))
	for _, path := range []string{"/v1/facts?all=true", "/v1/export?all=true"} {
		answer := httptest.NewRecorder()
		r.service.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, path, bytes.NewReader(nil)))
		if answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", path, answer.Code)
		}
	}
	if n := strings.Count(logs.String(), "trace_id=01000000000000000000000000000000"); n != 2 {
		t.Errorf("%d failures name their trace:\n%s", n, logs.String())
	}
}
