package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	prombridge "go.opentelemetry.io/contrib/bridges/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Export sends traces and metrics to a collector in the background. A collector
// that is slow or away costs what does not fit into a bounded queue, and delays
// nothing.
type Export struct {
	traces  *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
}

// flushLimit bounds how long a stop waits for the collector.
const flushLimit = 3 * time.Second

// Identity is who tells.
type Identity struct {
	// Service is palimpsest, or palimpsest-ingest where one runs alone; the
	// variable OTEL_SERVICE_NAME has the last word.
	Service, Version string
}

// NewExport begins to export, or returns nil where no collector is named. It
// does not wait for the collector.
func NewExport(ctx context.Context, cfg Config, id Identity, m *Metrics, log *slog.Logger) (*Export, error) {
	if cfg.OTLP.Endpoint == "" {
		return nil, nil //nolint:nilnil // off is the default, and no error
	}
	who, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceNamespace("palimpsest"), semconv.ServiceName(id.Service), semconv.ServiceVersion(id.Version),
		semconv.ServiceInstanceID(uuid.NewString()),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("telemetry: describe this process: %w", err)
	}
	spans, err := cfg.OTLP.spanExporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("telemetry: export traces: %w", err)
	}
	figures, err := cfg.OTLP.metricExporter(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("telemetry: export metrics: %w", err), spans.Shutdown(ctx))
	}
	return &Export{
		traces: newTraces(cfg, who, sdktrace.NewBatchSpanProcessor(
			patientSpans{spans, &courier{signal: "traces", metrics: m, log: log}})),
		metrics: sdkmetric.NewMeterProvider(sdkmetric.WithResource(who), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(
			patientMetrics{figures, &courier{signal: "metrics", metrics: m, log: log}},
			sdkmetric.WithProducer(prombridge.NewMetricProducer(prombridge.WithGatherer(m.known())))))),
	}, nil
}

func newTraces(cfg Config, who *resource.Resource, processor sdktrace.SpanProcessor) *sdktrace.TracerProvider {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(who), sdktrace.WithSpanProcessor(processor)}
	if os.Getenv("OTEL_TRACES_SAMPLER") == "" { // which names another kind of sampler
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Sampling))))
	}
	return sdktrace.NewTracerProvider(options...)
}

// known is what can be gathered, without what a dependency did not answer: its
// figures are missing, as they are where they are served.
func (m *Metrics) known() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, _ := m.registry.Gather()
		return families, nil
	})
}

// Tracer makes spans; nil where nothing is exported, so that nothing is traced.
func (e *Export) Tracer() trace.Tracer {
	if e == nil {
		return nil
	}
	return e.traces.Tracer(scopeName)
}

// Shutdown sends what is left, within 3 s, and ends. What a collector that is
// away does not take is lost, and no error.
func (e *Export) Shutdown(ctx context.Context) error {
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	flushed := make(chan error, 1)
	go func() { flushed <- e.metrics.Shutdown(ctx) }()
	err := errors.Join(e.traces.Shutdown(ctx), <-flushed)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
