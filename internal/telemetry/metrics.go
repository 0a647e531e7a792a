package telemetry

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// Metrics are a process's metrics, in a registry of their own. No label has a
// value that a publisher chooses: a tenant's figures are in the ledger and the
// reports.
type Metrics struct {
	registry *prometheus.Registry

	messages    *prometheus.CounterVec
	buried      *prometheus.CounterVec
	panics      *prometheus.CounterVec
	redelivered *prometheus.CounterVec
	handling    *prometheus.HistogramVec
	waiting     *prometheus.HistogramVec

	deltas *prometheus.CounterVec
	churn  prometheus.Counter

	backends backendMetrics
	requests *prometheus.CounterVec
	answers  *prometheus.HistogramVec
	failed   *prometheus.CounterVec // exports
}

// The bounds of histograms in seconds: 0.1 ms to 26 s for calls of a backend,
// 0.5 ms to 16 s for a handler or a request, 1 ms to 18 h for work that may wait
// for the end of an outage.
var (
	backendBuckets = prometheus.ExponentialBuckets(0.0001, 4, 10)
	handlerBuckets = prometheus.ExponentialBuckets(0.0005, 2, 16)
	waitBuckets    = prometheus.ExponentialBuckets(0.001, 4, 14)
)

// New returns metrics with those of the Go runtime and the process.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.messages = m.counter("messages_total", "Messages by verdict.", "service", "stage", "verdict")
	m.buried = m.counter("dead_letters_total", "Messages and candidates that became dead letters, by code.", "service", "code")
	m.panics = m.counter("panics_total", "Handler panics that were recovered.", "service", "stage")
	m.redelivered = m.counter("redeliveries_total", "Messages delivered more than once.", "service", "stage")
	m.handling = m.histogram("handler_seconds", "Time in handlers.", handlerBuckets, "service", "stage")
	m.waiting = m.histogram("wait_seconds", "Time from a message's arrival in its stream to its handler.", waitBuckets, "service", "stage")
	m.deltas = m.counter("deltas_total", "Deltas committed, by kind and reason.", "kind", "reason")
	churn := m.counter("churn_held_total", "Candidates held because their fact changes too often.")
	m.churn = churn.WithLabelValues()
	m.backends = backendMetrics{
		seconds: m.histogram("backend_seconds", "Time in calls of a backend.", backendBuckets, "backend", "operation"),
		errors:  m.counter("backend_errors_total", "Calls of a backend that failed.", "backend", "operation"),
	}
	m.requests = m.counter("http_requests_total", "HTTP requests by their answer.", "method", "route", "code")
	m.answers = m.histogram("http_seconds", "Time to answer HTTP requests.", handlerBuckets, "method", "route")
	m.failed = m.counter("export_failures_total", "Exports that the collector refused or missed.", "signal")
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

const prefix = "palimpsest_"

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}

// Observe counts one judged message; it is a [pipeline.Observer].
func (m *Metrics) Observe(o pipeline.Observation) {
	m.messages.WithLabelValues(o.Service, o.Stage, o.Verdict).Inc()
	if o.Code != "" {
		m.buried.WithLabelValues(o.Service, o.Code).Inc()
	}
	for _, code := range o.Letters {
		m.buried.WithLabelValues(o.Service, code).Inc()
	}
	if o.Panicked {
		m.panics.WithLabelValues(o.Service, o.Stage).Inc()
	}
	if o.Redelivered {
		m.redelivered.WithLabelValues(o.Service, o.Stage).Inc()
	}
	if o.Duration > 0 {
		m.handling.WithLabelValues(o.Service, o.Stage).Observe(o.Duration.Seconds())
	}
	if o.Waited > 0 {
		m.waiting.WithLabelValues(o.Service, o.Stage).Observe(o.Waited.Seconds())
	}
}

// Committed counts what an effect tells of.
func (m *Metrics) Committed(e events.EffectCommitted) {
	for _, a := range e.Applied {
		p := a.Delta.Provenance()
		m.deltas.WithLabelValues(string(a.Delta.Kind()), string(p.Reason)).Inc()
		// What made room for a newer one was counted when it was held.
		if p.Reason == events.ReasonChurn && !slices.Contains(e.Released, p.CandidateID) {
			m.churn.Inc()
		}
	}
}

// Handler serves the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry: m.registry, ErrorHandling: promhttp.ContinueOnError, Timeout: 5 * scrapeLimit,
	})
}

// Gather implements [prometheus.Gatherer].
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) { return m.registry.Gather() }

// ExportFailed counts an export that the collector refused or missed; signal is
// traces or metrics.
func (m *Metrics) ExportFailed(signal string) { m.failed.WithLabelValues(signal).Inc() }

// scrapeLimit bounds what a scrape asks of one dependency.
const scrapeLimit = 2 * time.Second
