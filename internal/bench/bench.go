package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/bench/bare"
	"palimpsest/internal/bench/usage"
	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

// Config says what to measure. Its zero value is everything, at full size.
type Config struct {
	// Only names the measures to run; none means all.
	Only []string
	// Rounds is how often each side takes its turn; 0 means 5, or 2 if Quick.
	Rounds int
	// Facts are the sizes of the scope that is searched; none means 1,000 and
	// 100,000, or 1,000 if Quick.
	Facts []int
	// Quick proves that all works within seconds. Its figures say little.
	Quick bool
	// Profiles is the directory for a CPU profile of each kind of process, of its
	// last turn; empty for none. Profiling costs a little.
	Profiles string
	// Progress receives the description of each measure before it runs, unless it is
	// nil.
	Progress func(measure string)
}

// The bounds of [Config].
const (
	maxRounds = 100
	maxFacts  = 1_000_000
)

// Validate names the first setting that cannot be used.
func (c Config) Validate() error {
	for _, name := range c.Only {
		if !slices.ContainsFunc(measures, func(m measure) bool { return m.name == name }) {
			return fmt.Errorf("only: %q is none of %s", name, strings.Join(Names(), ", "))
		}
	}
	if c.Rounds < 0 || c.Rounds > maxRounds {
		return fmt.Errorf("rounds: %d is not between 1 and %d", c.Rounds, maxRounds)
	}
	for _, n := range c.Facts {
		if n < effectFacts || n > maxFacts {
			return fmt.Errorf("facts: %d is not between %d and %d", n, effectFacts, maxFacts)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Rounds == 0 {
		c.Rounds = 5
		if c.Quick {
			c.Rounds = 2
		}
	}
	if len(c.Facts) == 0 {
		c.Facts = []int{1_000, 100_000}
		if c.Quick {
			c.Facts = c.Facts[:1]
		}
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	return c
}

// Parts holds the measured parts of the product. All of them are required.
type Parts struct {
	// Version is the program's own.
	Version string
	// Program is the binary that runs "bench-peer NAME --data DIR", see [PeerBare].
	Program string
	// Environ is the environment of the program's processes. It must not hold
	// settings, because they would change the figures.
	Environ []string
	// OpenStore opens a memory store over a directory.
	OpenStore func(ctx context.Context, dir string) (store.Store, error)
	// Login is how the owner's own processes connect to the broker of a data
	// directory.
	Login func(dir string) (nats.Option, error)
	// Embedder is the one that searches use.
	Embedder embed.Embedder
}

// measure is one thing that is compared with its limit.
type measure struct {
	name, about string
	run         func(context.Context, *bench) ([]Figure, error)
}

var measures = []measure{
	{"publish", "acknowledged publishing over the same on a bare JetStream server", measurePublish},
	{"store", "published → stored by ingest alone, over raw batched SQLite inserts of the same rows and indexes", measureStore},
	{"flow", "published → stored → fact by rule turn over 200 scopes, the whole product running", measureFlow},
	{"add", "adds over HTTP by 8 clients that wait for each answer, over as many publishing to the same product", measureAdd},
	{"wait", "added over HTTP → answered with its fact, at 50 adds/s (p50, p99), and of 1,000 adds at once (50 if quick) the last one", measureWait},
	{"grown", "added → answered with its fact, of a user with 10,000 rows over one with 1,000 (200 and 20 if quick)", measureGrown},
	{"lag", "published → found by text, by vector, as a fact, while others publish 200 messages/s (20 if quick)", measureLag},
	{"search", "a search over the sum of a bare FTS5 query and a bare scan of contiguous vectors", measureSearch},
	{"revive", "ready after a kill with 200 messages of one user under way → a new message answered with its fact, of 20 kills (2 if quick)", measureRevive},
	{"storm", "ready after the last of 25 kills (2 if quick) 1 to 3 s apart, while 80 users add messages → all is consolidated", measureStorm},
	{"idle", "an empty process", measureIdle},
	{"footprint", "memory and disk a minute after 10,000 episodes of one sentence by 50 users were consolidated", measureFootprint},
	{"allocs", "one message from decode to the memory store", measureAllocs},
}

// Names lists the measures in the order in which they run.
func Names() []string {
	names := make([]string, len(measures))
	for i, m := range measures {
		names[i] = m.name
	}
	return names
}

// sizes is how much work one turn is.
type sizes struct {
	sync, async int           // messages
	flood       int           // episodes, to be consolidated
	stored      int           // episodes, to be stored
	adds        int           // episodes, added one by one by each client
	waits       int           // adds that wait, at a pace
	crowd       int           // adds that wait, all at once
	grown       [2]int        // episodes of a user
	pace        int           // messages a second while lags are measured
	probes      int           // messages whose lag is measured
	repeats     int           // of the mixture of questions
	messages    int           // whose allocations are counted
	kills       int           // of a process
	storms      int           // kills in a row
	settle      time.Duration // of an empty process; it returns garbage every 10 s
	sentences   int           // episodes whose footprint is measured
	rest        time.Duration
}

var (
	fullSizes = sizes{sync: 2_000, async: 30_000, flood: 4_000, stored: 40_000, adds: 4_000, waits: 500, crowd: 1_000, grown: [2]int{1_000, 10_000}, pace: 200, probes: 50, repeats: 3, messages: 4_000, kills: 20, storms: 25, settle: 12 * time.Second,
		sentences: 10_000, rest: time.Minute}
	quickSizes = sizes{sync: 20, async: 200, flood: 200, stored: 200, adds: 80, waits: 10, crowd: 50, grown: [2]int{20, 200}, pace: 20, probes: 3, repeats: 1, messages: 200, kills: 2, storms: 2, settle: 100 * time.Millisecond,
		sentences: 200, rest: 100 * time.Millisecond}
)

// bench is one run.
type bench struct {
	Config
	Parts
	sizes
	dir       string             // of temporary files
	measuring string             // the measure under way
	rows      map[int]*bare.Rows // the stored rows of a flood by its size, once known
}

// Run measures and returns the report. The report lacks the measures that fail, and
// the error names each of them and its cause. Run removes all files and waits for
// all processes before it returns, also when ctx ends.
func Run(ctx context.Context, cfg Config, parts Parts) (_ Report, err error) {
	if err := cfg.Validate(); err != nil {
		return Report{}, err
	}
	b := &bench{Config: cfg.withDefaults(), Parts: parts, sizes: fullSizes, rows: map[int]*bare.Rows{}}
	if cfg.Quick {
		b.sizes = quickSizes
	}
	if b.dir, err = os.MkdirTemp("", "palimpsest-bench-*"); err != nil {
		return Report{}, fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	began := time.Now()
	report := Report{
		Version: parts.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Load: usage.Load(), At: began.UTC().Truncate(time.Second), Rounds: b.Rounds, Quick: b.Quick,
	}
	for _, m := range measures {
		if len(b.Only) > 0 && !slices.Contains(b.Only, m.name) {
			continue
		}
		b.Progress(m.name + ": " + m.about)
		b.measuring = m.name
		figures, failed := m.run(ctx, b)
		if ctx.Err() != nil {
			return report, ctx.Err()
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("measure %s: %w", m.name, failed))
			continue
		}
		report.Measures = append(report.Measures, Measure{Name: m.name, About: m.about, Figures: figures})
	}
	report.Seconds = time.Since(began).Seconds()
	return report, err
}

// budget bounds the rounds of one comparison: a busy machine gives fewer rounds,
// not a run without an end.
const budget = 45 * time.Second

// rounds runs the sides by turns, until there are enough rounds or the budget is
// spent. Each round begins with another side, so that the effects of one on the next
// (a warm disk, a backlog of dirty pages) are spread over all.
func (b *bench) rounds(ctx context.Context, sides ...func(context.Context) error) error {
	began := time.Now()
	for r := range b.Rounds {
		if r > 0 && time.Since(began) > budget {
			return nil
		}
		for i := range sides {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := sides[(r+i)%len(sides)](ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// fresh makes an empty directory, which the caller removes.
func (b *bench) fresh(name string) (string, error) {
	dir, err := os.MkdirTemp(b.dir, name+"-*")
	if err != nil {
		return "", fmt.Errorf("create directory: %w", err)
	}
	return dir, nil
}

func memoryFile(dir string) string { return filepath.Join(dir, "memory.db") }
