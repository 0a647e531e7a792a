package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/internal/audit"
	"palimpsest/internal/store"
)

// The backends that calls are timed of, as they stand in labels and spans.
const (
	backendMemory   = "memory"
	backendJournal  = "journal"
	backendAuditLog = "auditlog"
	backendEmbedder = "embedder"
)

// scopeName is the instrumentation scope of spans.
const scopeName = "palimpsest"

type backendMetrics struct {
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
}

// operation is a method of a backend, ready to be timed without an allocation.
type operation struct {
	backend, name string
	span          string
	kind          trace.SpanKind
	seconds       prometheus.Observer
	errors        prometheus.Counter
}

func (m backendMetrics) operation(backend, name string) operation {
	return operation{
		backend: backend, name: name, span: backend + " " + name, kind: trace.SpanKindClient,
		seconds: m.seconds.WithLabelValues(backend, name), errors: m.errors.WithLabelValues(backend, name),
	}
}

// timing is one call under way.
type timing struct {
	operation *operation
	began     time.Time
	span      trace.Span // nil outside a recorded trace
}

// begin starts the clock, and a span where the call is part of a trace that is
// recorded.
func (o *operation) begin(ctx context.Context) (context.Context, timing) {
	t := timing{operation: o, began: time.Now()}
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		ctx, t.span = parent.TracerProvider().Tracer(scopeName).Start(ctx, o.span, trace.WithSpanKind(o.kind),
			trace.WithAttributes(attribute.String("palimpsest.backend", o.backend), attribute.String("palimpsest.operation", o.name)))
	}
	return ctx, t
}

// set adds attributes to the span, if there is one. Callers that must work them
// out ask recording before.
func (t timing) set(attributes ...attribute.KeyValue) {
	if t.span != nil {
		t.span.SetAttributes(attributes...)
	}
}

func (t timing) recording() bool { return t.span != nil }

// end stops the clock. The span has the kind of an error and not its text, which
// may hold content.
func (t timing) end(err error) {
	t.operation.seconds.Observe(time.Since(t.began).Seconds())
	bad := err != nil && !isAnswer(err)
	if bad {
		t.operation.errors.Inc()
	}
	if t.span == nil {
		return
	}
	if bad {
		t.span.SetStatus(codes.Error, "the backend failed")
	}
	t.span.End()
}

// isAnswer reports whether an error is an answer of the contracts, or the end of
// the caller's context.
func isAnswer(err error) bool {
	for _, answer := range []error{
		store.ErrNotFound, store.ErrBehind, store.ErrIncarnation, store.ErrMismatch, store.ErrClosed,
		audit.ErrConflict, audit.ErrOtherHistory, context.Canceled,
	} {
		if errors.Is(err, answer) {
			return true
		}
	}
	return false
}
