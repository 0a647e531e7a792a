package telemetry_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"palimpsest/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// collector takes what is exported, over either protocol.
type collector struct {
	collecttrace.UnimplementedTraceServiceServer
	mu      sync.Mutex
	spans   []string // service.name: name
	figures map[string]bool
}

func (c *collector) Export(_ context.Context, in *collecttrace.ExportTraceServiceRequest) (*collecttrace.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range in.GetResourceSpans() {
		service := ""
		for _, a := range r.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				service = a.GetValue().GetStringValue()
			}
		}
		for _, s := range r.GetScopeSpans() {
			for _, span := range s.GetSpans() {
				c.spans = append(c.spans, service+": "+span.GetName())
			}
		}
	}
	return &collecttrace.ExportTraceServiceResponse{}, nil
}

// metricsOf is the other service of the collector.
type metricsOf struct {
	collectmetrics.UnimplementedMetricsServiceServer
	*collector
}

func (m metricsOf) Export(_ context.Context, in *collectmetrics.ExportMetricsServiceRequest) (*collectmetrics.ExportMetricsServiceResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range in.GetResourceMetrics() {
		for _, s := range r.GetScopeMetrics() {
			for _, f := range s.GetMetrics() {
				m.figures[f.GetName()] = true
			}
		}
	}
	return &collectmetrics.ExportMetricsServiceResponse{}, nil
}

// ServeHTTP takes protobuf over HTTP.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	traces, figures := &collecttrace.ExportTraceServiceRequest{}, &collectmetrics.ExportMetricsServiceRequest{}
	switch {
	case err != nil:
	case r.URL.Path == "/otlp/v1/traces":
		if err = proto.Unmarshal(body, traces); err == nil {
			_, err = c.Export(r.Context(), traces)
		}
	case r.URL.Path == "/otlp/v1/metrics":
		if err = proto.Unmarshal(body, figures); err == nil {
			_, err = metricsOf{collector: c}.Export(r.Context(), figures)
		}
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func (c *collector) overHTTP(t *testing.T) (endpoint string) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return server.URL + "/otlp"
}

func (c *collector) overGRPC(t *testing.T) (endpoint string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collecttrace.RegisterTraceServiceServer(server, c)
	collectmetrics.RegisterMetricsServiceServer(server, metricsOf{collector: c})
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return "http://" + listener.Addr().String()
}

func newExport(t *testing.T, protocol, endpoint string, m *telemetry.Metrics, log *slog.Logger) *telemetry.Export {
	t.Helper()
	cfg := telemetry.DefaultConfig()
	cfg.OTLP = telemetry.OTLP{Endpoint: endpoint, Protocol: protocol}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := telemetry.NewExport(t.Context(), cfg, telemetry.Identity{Service: "palimpsest-ingest", Version: "v1"}, m, log)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestWhatIsLeftIsSentAtTheStop, over both protocols: spans, and the metrics
// under the names that they are served by.
func TestWhatIsLeftIsSentAtTheStop(t *testing.T) {
	t.Parallel()
	for protocol, serve := range map[string]func(*collector, *testing.T) string{
		"grpc": (*collector).overGRPC, "http": (*collector).overHTTP, "http/protobuf": (*collector).overHTTP,
	} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := &collector{figures: map[string]bool{}}
			m := full(t)
			e := newExport(t, protocol, serve(c, t), m, slog.New(slog.DiscardHandler))
			_, span := e.Tracer().Start(t.Context(), "process ingest")
			span.End()
			if err := e.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(c.spans) != 1 || c.spans[0] != "palimpsest-ingest: process ingest" {
				t.Errorf("spans %q", c.spans)
			}
			families, err := m.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if !c.figures[f.GetName()] {
					t.Errorf("%s was not exported", f.GetName())
				}
			}
		})
	}
}

// TestCollectorThatIsAway: a missing collector delays nothing and is logged once.
func TestCollectorThatIsAway(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := telemetry.New()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	e := newExport(t, "http", "http://"+listener.Addr().String(), m, slog.New(slog.NewTextHandler(&log, nil)))
	began := time.Now()
	for range 20_000 { // far more than the queue holds
		_, span := e.Tracer().Start(t.Context(), "process ingest")
		span.End()
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("spans took %v", took)
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if n := strings.Count(log.String(), "signal=traces"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
	if text := scrape(m); !strings.Contains(text, `palimpsest_export_failures_total{signal="traces"}`) {
		t.Error("the failures are not counted")
	}
}

func TestOffIsTheDefault(t *testing.T) {
	t.Parallel()
	e, err := telemetry.NewExport(t.Context(), telemetry.DefaultConfig(), telemetry.Identity{}, telemetry.New(), slog.Default())
	if e != nil || err != nil || e.Tracer() != nil || e.Shutdown(t.Context()) != nil {
		t.Errorf("%v, %v", e, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*telemetry.Config){
		"telemetry.otlp.endpoint": func(c *telemetry.Config) { c.OTLP.Endpoint = "127.0.0.1:4317" },
		"telemetry.otlp.protocol": func(c *telemetry.Config) { c.OTLP.Protocol = "udp" },
		"telemetry.sampling":      func(c *telemetry.Config) { c.Sampling = 1.5 },
	} {
		c := telemetry.DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestLogNamesTheTrace: log records of a trace name it, others do not.
func TestLogNamesTheTrace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := telemetry.DefaultLog().New(&out).With("service", "ingest")
	log.Info("untraced")
	if strings.Contains(out.String(), "trace_id") {
		t.Errorf("got %s", out.String())
	}
	of := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	log.InfoContext(trace.ContextWithSpanContext(t.Context(), of), "traced")
	if !strings.Contains(out.String(), "trace_id=01000000000000000000000000000000 span_id=0200000000000000") {
		t.Errorf("got %s", out.String())
	}
}
