package telemetry

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// scrapeLimit bounds what a scrape asks of the store.
const scrapeLimit = 2 * time.Second

// Metrics are a process's metrics, in a registry of their own.
type Metrics struct {
	registry *prometheus.Registry
	messages *prometheus.CounterVec
	buried   *prometheus.CounterVec
	panics   *prometheus.CounterVec
	redelivd *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	churn    prometheus.Counter
}

// New returns metrics with those of the Go runtime and the process.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palimpsest_messages_total", Help: "Messages by what became of them.",
		}, []string{"service", "stage", "verdict"}),
		buried: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palimpsest_dead_letters_total", Help: "Messages buried, by code.",
		}, []string{"service", "code"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palimpsest_panics_total", Help: "Handler panics that were recovered.",
		}, []string{"service", "stage"}),
		redelivd: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palimpsest_redeliveries_total", Help: "Messages delivered more than once.",
		}, []string{"service", "stage"}),
		churn: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "palimpsest_churn_held_total", Help: "Candidates kept from changing a fact that changes too often.",
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "palimpsest_handler_seconds", Help: "Time in handlers.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16), // 0.5 ms to 16 s
		}, []string{"service", "stage"}),
	}
	m.registry.MustRegister(m.messages, m.buried, m.panics, m.redelivd, m.seconds, m.churn,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Observe counts one judged message; it is a [pipeline.Observer].
func (m *Metrics) Observe(o pipeline.Observation) {
	m.messages.WithLabelValues(o.Service, o.Stage, o.Verdict).Inc()
	if o.Code != "" {
		m.buried.WithLabelValues(o.Service, o.Code).Inc()
	}
	if o.Panicked {
		m.panics.WithLabelValues(o.Service, o.Stage).Inc()
	}
	if o.Redelivered {
		m.redelivd.WithLabelValues(o.Service, o.Stage).Inc()
	}
	if o.Duration > 0 {
		m.seconds.WithLabelValues(o.Service, o.Stage).Observe(o.Duration.Seconds())
	}
}

// Committed counts what an effect tells of.
func (m *Metrics) Committed(e events.EffectCommitted) {
	for _, a := range e.Applied {
		p := a.Delta.Provenance()
		// What made room for a newer one was counted when it was held.
		if p.Reason == events.ReasonChurn && !slices.Contains(e.Released, p.CandidateID) {
			m.churn.Inc()
		}
	}
}

// WatchStore adds the store's sizes, asked for at each scrape.
func (m *Metrics) WatchStore(health store.Health) {
	m.registry.MustRegister(&storeCollector{health: health})
}

// WatchStages adds what each stage holds, asked for at each scrape.
func (m *Metrics) WatchStages(stats func() []pipeline.StageStats) {
	m.registry.MustRegister(&stageCollector{stats: stats})
}

// WatchLetters adds how many dead letters there are, asked for at each scrape.
func (m *Metrics) WatchLetters(count func(context.Context) (uint64, error)) {
	m.registry.MustRegister(letterCollector(count))
}

// Handler serves the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, ErrorHandling: promhttp.ContinueOnError})
}

type storeCollector struct{ health store.Health }

var rows = prometheus.NewDesc("palimpsest_store_rows", "Rows of the memory store.", []string{"kind"}, nil)

// Describe implements [prometheus.Collector].
func (*storeCollector) Describe(out chan<- *prometheus.Desc) { out <- rows }

// Collect implements [prometheus.Collector].
func (c *storeCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	s, err := c.health.Stats(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(rows, err)
		return
	}
	for kind, n := range map[string]uint64{
		"scopes": s.Scopes, "episodes": s.Episodes, "facts": s.Facts, "versions": s.Versions,
		"entities": s.Entities, "vectors_pending": s.VectorsPending, "holds": s.Holds,
	} {
		out <- prometheus.MustNewConstMetric(rows, prometheus.GaugeValue, float64(n), kind)
	}
}

type stageCollector struct {
	stats func() []pipeline.StageStats
}

var inFlight = prometheus.NewDesc("palimpsest_in_flight", "Messages a stage holds.", []string{"service", "stage"}, nil)

// Describe implements [prometheus.Collector].
func (*stageCollector) Describe(out chan<- *prometheus.Desc) { out <- inFlight }

// Collect implements [prometheus.Collector].
func (c *stageCollector) Collect(out chan<- prometheus.Metric) {
	for _, s := range c.stats() {
		out <- prometheus.MustNewConstMetric(inFlight, prometheus.GaugeValue, float64(s.InFlight), s.Service, s.Stage)
	}
}

type letterCollector func(context.Context) (uint64, error)

var letters = prometheus.NewDesc("palimpsest_dead_letters", "Dead letters that nobody has retried or dropped.", nil, nil)

// Describe implements [prometheus.Collector].
func (letterCollector) Describe(out chan<- *prometheus.Desc) { out <- letters }

// Collect implements [prometheus.Collector].
func (count letterCollector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	n, err := count(ctx)
	if err != nil {
		out <- prometheus.NewInvalidMetric(letters, err)
		return
	}
	out <- prometheus.MustNewConstMetric(letters, prometheus.GaugeValue, float64(n))
}
