package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the outcome of a run.
type Report struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	CPUs     int    `json:"cpus"`
	// Load is how many processes wanted a processor in the minute before; 0
	// where the system does not tell. Above CPUs, others were measured as well.
	Load     float64   `json:"load,omitempty"`
	At       time.Time `json:"at"`
	Seconds  float64   `json:"seconds"`
	Rounds   int       `json:"rounds"`
	Quick    bool      `json:"quick,omitempty"`
	Measures []Measure `json:"measures"`
}

// Measure is a group of figures taken together.
type Measure struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Figures []Figure `json:"figures"`
}

// Better says which way a figure should go.
type Better string

// The ways.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
)

// Figure is one result: the median of the rounds and their spread. A ratio
// carries what it was made of.
type Figure struct {
	Name string `json:"name"`
	Spread
	Better Better `json:"better"`
	// Target is what the figure should reach at least, or at most; 0 for none.
	Target float64 `json:"target,omitempty"`
	Ours   *Spread `json:"ours,omitempty"`
	Limit  *Spread `json:"limit,omitempty"`
}

// Spread is what the rounds gave. N counts them.
type Spread struct {
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

// The units.
const (
	unitRatio    = "×"
	unitMessages = "msg/s"
	unitEpisodes = "episodes/s"
	unitMillis   = "ms"
	unitMiB      = "MiB"
)

// Missed reports whether the figure has a target and does not reach it.
func (f Figure) Missed() bool {
	switch {
	case f.Target == 0:
		return false
	case f.Better == Higher:
		return f.Median < f.Target
	}
	return f.Median > f.Target
}

// spread sums up the rounds, of which there must be one at least.
func spread(unit string, rounds []float64) Spread {
	sorted := slices.Sorted(slices.Values(rounds))
	return Spread{Unit: unit, Median: median(sorted), Min: sorted[0], Max: sorted[len(sorted)-1], N: len(sorted)}
}

// median of an ascending list.
func median(sorted []float64) float64 {
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

// percentile of an ascending list, by the nearest rank.
func percentile[T cmp.Ordered](sorted []T, p float64) T {
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// pair is what both sides gave, round by round.
type pair struct{ ours, limit []float64 }

// over is ours / limit, divided within each round, since the machine may be
// another from one round to the next.
func (p pair) over(name, unit string, better Better, target float64) Figure {
	ratios := make([]float64, len(p.ours))
	for i := range ratios {
		ratios[i] = p.ours[i] / p.limit[i]
	}
	ours, limit := spread(unit, p.ours), spread(unit, p.limit)
	return Figure{Name: name, Spread: spread(unitRatio, ratios), Better: better, Target: target, Ours: &ours, Limit: &limit}
}

// Write prints the report for a reader.
func (r Report) Write(w io.Writer) error {
	p := &printer{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	p.line("palimpsest %s, %s %s, %d CPUs, load before %s, %s, median of %d rounds, took %.0f s", r.Version, r.Go, r.Platform,
		r.CPUs, number(r.Load), r.At.Format(time.RFC3339), r.Rounds, r.Seconds)
	if r.Load > float64(r.CPUs)/2 {
		p.line("the machine has other work: rates of what runs on several processors come out too low")
	}
	if r.Quick {
		p.line("quick: shows that it runs; its figures say little")
	}
	for _, m := range r.Measures {
		p.line("")
		p.line("%s: %s", m.Name, m.About)
		p.line("  FIGURE\tMEDIAN\tMIN–MAX\tN\tTARGET\tOURS\tLIMIT")
		for _, f := range m.Figures {
			p.line("  %s\t%s %s\t%s–%s\t%d\t%s\t%s\t%s", f.Name, number(f.Median), f.Unit, number(f.Min), number(f.Max), f.N,
				f.aim(), f.Ours.side(), f.Limit.side())
		}
		p.flush()
	}
	p.flush()
	return p.err
}

func (f Figure) aim() string {
	if f.Target == 0 {
		return "-"
	}
	sign, verdict := "≥", "met"
	if f.Better == Lower {
		sign = "≤"
	}
	if f.Missed() {
		verdict = "missed"
	}
	return fmt.Sprintf("%s %s %s", sign, number(f.Target), verdict)
}

func (s *Spread) side() string {
	if s == nil {
		return "-"
	}
	return number(s.Median) + " " + s.Unit
}

// number shows three digits, or all of those before the point.
func number(x float64) string {
	digits := 0
	if x != 0 {
		digits = min(max(2-int(math.Floor(math.Log10(math.Abs(x)))), 0), 4)
	}
	text := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// printer keeps the first error, so that a table is written without asking for
// it in every line.
type printer struct {
	w   *tabwriter.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *printer) flush() {
	if p.err == nil {
		p.err = p.w.Flush()
	}
}
