package telemetry

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// gauge is a kind of figure that is asked for at a scrape.
type gauge struct{ desc *prometheus.Desc }

func newGauge(name, help string, labels ...string) gauge {
	return gauge{prometheus.NewDesc(prefix+name, help, labels, nil)}
}

func (g gauge) of(value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labels...)
}

// sample asks a dependency for figures at a scrape, and remembers the answer for
// a while, so that eager scrapers and dear questions cost little.
type sample struct {
	gauges []gauge
	read   func(context.Context) ([]prometheus.Metric, error)
	// rest is how long an answer is good; a slow one is good for longer, so that
	// asking takes no more than a twentieth of the time.
	rest time.Duration

	mu     sync.Mutex
	answer []prometheus.Metric
	until  time.Time
}

// slowdown is how many times as long as it took an answer is good.
const slowdown = 20

// Describe implements [prometheus.Collector].
func (s *sample) Describe(out chan<- *prometheus.Desc) {
	for _, g := range s.gauges {
		out <- g.desc
	}
}

// Collect implements [prometheus.Collector]. A question that fails leaves its
// figures out: stale ones would look well.
func (s *sample) Collect(out chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if began := time.Now(); !began.Before(s.until) {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
		answer, err := s.read(ctx)
		cancel()
		s.answer = answer
		if err != nil {
			s.answer = []prometheus.Metric{prometheus.NewInvalidMetric(s.gauges[0].desc, err)}
		}
		now := time.Now()
		s.until = now.Add(max(s.rest, slowdown*now.Sub(began)))
	}
	for _, metric := range s.answer {
		out <- metric
	}
}

func (m *Metrics) watch(rest time.Duration, read func(context.Context) ([]prometheus.Metric, error), gauges ...gauge) {
	m.registry.MustRegister(&sample{gauges: gauges, read: read, rest: rest})
}

// How long answers are good: those that cost a question to a server or a count,
// and the ledger, which adds up all scopes.
const (
	restShort = 5 * time.Second
	restLong  = time.Minute
)

// WatchBuild adds what is running.
func (m *Metrics) WatchBuild(version string) {
	info := newGauge("build_info", "What is running; always 1.", "version", "go_version")
	m.watch(0, func(context.Context) ([]prometheus.Metric, error) {
		return []prometheus.Metric{info.of(1, version, runtime.Version())}, nil
	}, info)
}

// WatchStore adds the store's sizes.
func (m *Metrics) WatchStore(health store.Health) {
	rows := newGauge("store_rows", "Rows of the memory store.", "kind")
	size := newGauge("store_bytes", "Size of the memory store.")
	m.watch(restShort, func(ctx context.Context) ([]prometheus.Metric, error) {
		s, err := health.Stats(ctx)
		if err != nil {
			return nil, err
		}
		out := []prometheus.Metric{size.of(float64(s.Bytes))}
		for kind, n := range map[string]uint64{
			"scopes": s.Scopes, "episodes": s.Episodes, "facts": s.Facts, "versions": s.Versions,
			"entities": s.Entities, "vectors_pending": s.VectorsPending, "vectors_refused": s.VectorsRefused,
			"vectors_building": s.VectorsBuilding, "holds": s.Holds,
		} {
			out = append(out, rows.of(float64(n), kind))
		}
		return out, nil
	}, rows, size)
}

// WatchStages adds what each stage holds, and whether anything gets through it.
func (m *Metrics) WatchStages(stats func() []pipeline.StageStats) {
	inFlight := newGauge("in_flight", "Messages a stage holds.", "service", "stage")
	failing := newGauge("stage_failing", "1 while a stage has handled no message since its last failure.", "service", "stage")
	m.watch(0, func(context.Context) ([]prometheus.Metric, error) {
		var out []prometheus.Metric
		for _, s := range stats() {
			out = append(out, inFlight.of(float64(s.InFlight), s.Service, s.Stage), failing.of(boolean(s.Failing), s.Service, s.Stage))
		}
		return out, nil
	}, inFlight, failing)
}

// WatchBacklog adds what waits for each consumer that this process reads. Every
// replica tells the same.
func (m *Metrics) WatchBacklog(progress func(context.Context) ([]pipeline.Progress, error)) {
	pending := newGauge("consumer_pending", "Messages that are not delivered to a consumer yet: its lag.", "stream", "consumer")
	unacked := newGauge("consumer_ack_pending", "Messages delivered and not acknowledged.", "stream", "consumer")
	m.watch(restShort, func(ctx context.Context) ([]prometheus.Metric, error) {
		consumers, err := progress(ctx)
		if err != nil {
			return nil, err
		}
		var out []prometheus.Metric
		for _, c := range consumers {
			out = append(out, pending.of(float64(c.Pending), c.Stream, c.Consumer), unacked.of(float64(c.Unacked), c.Stream, c.Consumer))
		}
		return out, nil
	}, pending, unacked)
}

// WatchStreams adds how large the streams are.
func (m *Metrics) WatchStreams(sizes func(context.Context) ([]pipeline.StreamSize, error)) {
	messages := newGauge("stream_messages", "Messages in a stream.", "stream")
	size := newGauge("stream_bytes", "Size of a stream.", "stream")
	m.watch(restShort, func(ctx context.Context) ([]prometheus.Metric, error) {
		streams, err := sizes(ctx)
		if err != nil {
			return nil, err
		}
		var out []prometheus.Metric
		for _, s := range streams {
			out = append(out, messages.of(float64(s.Messages), s.Stream), size.of(float64(s.Bytes), s.Stream))
		}
		return out, nil
	}, messages, size)
}

// WatchLetters adds how many dead letters there are.
func (m *Metrics) WatchLetters(count func(context.Context) (uint64, error)) {
	deadLetters := newGauge("dead_letters", "Dead letters not retried or dropped yet.")
	m.watch(restShort, func(ctx context.Context) ([]prometheus.Metric, error) {
		n, err := count(ctx)
		return []prometheus.Metric{deadLetters.of(float64(n))}, err
	}, deadLetters)
}

// WatchDisk adds the free space of the broker's disk and how much of it is kept
// in reserve, in bytes.
func (m *Metrics) WatchDisk(space func() (free, reserve int64)) {
	free := newGauge("disk_free_bytes", "Free space of the file system that the broker writes to.")
	reserve := newGauge("disk_reserve_bytes", "Free space below which new episodes are refused.")
	m.watch(0, func(context.Context) ([]prometheus.Metric, error) {
		f, r := space()
		return []prometheus.Metric{free.of(float64(f)), reserve.of(float64(r))}, nil
	}, free, reserve)
}

// WatchReady adds each dependency as readiness tells of it.
func (m *Metrics) WatchReady(ready func(context.Context) api.Readiness) {
	up := newGauge("dependency_up", "1 while a dependency answers as it should.", "dependency")
	m.watch(restShort, func(ctx context.Context) ([]prometheus.Metric, error) {
		var out []prometheus.Metric
		for name, check := range ready(ctx).Checks {
			out = append(out, up.of(boolean(check.OK), name))
		}
		return out, nil
	}, up)
}

// WatchStalls adds what stands still, as the process last saw it.
func (m *Metrics) WatchStalls(stalls func() pipeline.Stalls) {
	stages := newGauge("stalled_stages", "Stages that have work and have passed nothing for 15 s.")
	scopes := newGauge("stalled_scopes", "Scopes that have kept a handler for 15 s, or whose tick is overdue.")
	delayed := newGauge("delayed_messages", "Messages that a stage holds for another attempt.", "stage")
	m.watch(0, func(context.Context) ([]prometheus.Metric, error) {
		s := stalls()
		out := []prometheus.Metric{stages.of(float64(len(s.Stages))), scopes.of(float64(s.ScopeCount))}
		for stage, n := range s.Delayed {
			out = append(out, delayed.of(float64(n), stage))
		}
		return out, nil
	}, stages, scopes, delayed)
}

// Ledger is what the sums of the ledger are made from.
type Ledger interface {
	store.Ledger
	Projects(ctx context.Context) ([]string, error)
}

// WatchLedger adds the ledger of the rules, over all projects and scopes.
func (m *Metrics) WatchLedger(ledger Ledger, rules []string) {
	episodes := newGauge("ledger_episodes", "Episodes by state: accepted = consolidated + pending + skipped.", "rule", "state")
	candidates := newGauge("ledger_candidates", "Candidates by state.", "rule", "state")
	m.watch(restLong, func(ctx context.Context) ([]prometheus.Metric, error) {
		totals, err := sumLedger(ctx, ledger, rules)
		if err != nil {
			return nil, err
		}
		var out []prometheus.Metric
		for rule, t := range totals {
			for state, n := range map[string]uint64{
				"accepted": t.Accepted, "consolidated": t.Consolidated, "pending": t.Pending, "skipped": t.Skipped,
			} {
				out = append(out, episodes.of(float64(n), rule, state))
			}
			for state, n := range map[string]uint64{"decided": t.Decided, "held": t.Held, "dropped": t.Dropped} {
				out = append(out, candidates.of(float64(n), rule, state))
			}
		}
		return out, nil
	}, episodes, candidates)
}

func sumLedger(ctx context.Context, ledger Ledger, rules []string) (map[string]store.Account, error) {
	totals := make(map[string]store.Account, len(rules))
	for _, rule := range rules {
		totals[rule] = store.Account{}
	}
	projects, err := ledger.Projects(ctx)
	if err != nil {
		return nil, err
	}
	for _, project := range projects {
		accounts, err := ledger.Accounts(ctx, scope.Selector{Project: project}, rules)
		if err != nil {
			return nil, err
		}
		for _, a := range accounts {
			totals[a.Rule] = totals[a.Rule].Plus(a)
		}
	}
	return totals, nil
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
