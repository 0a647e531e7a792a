package telemetry

import (
	"context"
	"log/slog"
	"net/url"
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func (o OTLP) spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if o.Protocol == protocolGRPC {
		return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(o.Endpoint))
	}
	address, err := url.JoinPath(o.Endpoint, "v1", "traces")
	if err != nil {
		return nil, err
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(address))
}

func (o OTLP) metricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	if o.Protocol == protocolGRPC {
		return otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpointURL(o.Endpoint))
	}
	address, err := url.JoinPath(o.Endpoint, "v1", "metrics")
	if err != nil {
		return nil, err
	}
	return otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(address))
}

// courier tells of a collector that takes nothing once, and once of its return.
// It keeps errors from OpenTelemetry's own handler, which is global and prints
// each.
type courier struct {
	signal  string
	metrics *Metrics
	log     *slog.Logger

	mu   sync.Mutex
	away bool
}

func (c *courier) report(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.metrics.ExportFailed(c.signal)
		if !c.away {
			c.log.Warn("the collector is away: dropping telemetry until it answers", "signal", c.signal, "error", err)
		}
	case c.away:
		c.log.Info("the collector answers again", "signal", c.signal)
	}
	c.away = err != nil
}

type patientSpans struct {
	sdktrace.SpanExporter
	courier *courier
}

// ExportSpans implements [sdktrace.SpanExporter].
func (p patientSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	p.courier.report(p.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

type patientMetrics struct {
	sdkmetric.Exporter
	courier *courier
}

// Export implements [sdkmetric.Exporter].
func (p patientMetrics) Export(ctx context.Context, figures *metricdata.ResourceMetrics) error {
	p.courier.report(p.Exporter.Export(ctx, figures))
	return nil
}
