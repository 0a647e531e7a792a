package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// Report holds the figures of all ways to ask.
type Report struct {
	Set   string `json:"set"`
	Turns int    `json:"turns"`
	Runs  []Run  `json:"runs"`
}

// Run holds the figures of one way to ask.
type Run struct {
	// Embedder is empty where only one was measured.
	Embedder   string             `json:"embedder,omitempty"`
	Name       string             `json:"name"`
	All        Figures            `json:"all"`
	Categories map[string]Figures `json:"categories,omitempty"`
	// Median and P95 are how long a question took, in milliseconds.
	Median float64 `json:"p50_ms"`
	P95    float64 `json:"p95_ms"`
}

// LoadReport reads a report that was written as JSON.
func LoadReport(path string) (Report, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Report{}, fmt.Errorf("load baseline: %w", err)
	}
	var r Report
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("load baseline %s: %w", path, err)
	}
	return r, nil
}

// Write prints a table, in per cent. A baseline adds the difference in recall@10.
func (r Report) Write(out io.Writer, baseline *Report) error {
	_, _ = fmt.Fprintf(out, "%s: %d turns\n", r.Set, r.Turns)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprint(t, "embedder\trun\tcategory\tn\tfirst\tfirst 3\tR@5\tR@10\tR@25\tMRR\tR@G\tp50 ms\tp95 ms\t")
	if baseline != nil {
		_, _ = fmt.Fprint(t, "R@10 before\t±\t")
	}
	_, _ = fmt.Fprintln(t)
	for _, run := range r.Runs {
		run.write(t, baseline)
	}
	return t.Flush()
}

func (r Run) write(t io.Writer, baseline *Report) {
	line := func(category string, f Figures, times string) {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t", r.Embedder, r.Name, category, f.Questions,
			100*f.First, 100*f.Three, 100*f.Recall5, 100*f.Recall10, 100*f.Recall25, 100*f.MRR, 100*f.RecallGold, times)
		if baseline != nil {
			before, known := baseline.figures(r, category)
			if known {
				_, _ = fmt.Fprintf(t, "%.1f\t%+.1f\t", 100*before.Recall10, 100*(f.Recall10-before.Recall10))
			} else {
				_, _ = fmt.Fprint(t, "-\t-\t")
			}
		}
		_, _ = fmt.Fprintln(t)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Categories)) {
		line(name, r.Categories[name], "\t")
	}
	line(everything, r.All, fmt.Sprintf("%.1f\t%.1f", r.Median, r.P95))
}

// everything names the mean over all questions.
const everything = "all"

// figures are those of a run as run was: with the same embedder, else with the
// first one.
func (r Report) figures(run Run, category string) (Figures, bool) {
	like := func(of Run) bool { return of.Name == run.Name && of.Embedder == run.Embedder }
	if !slices.ContainsFunc(r.Runs, like) {
		like = func(of Run) bool { return of.Name == run.Name }
	}
	for _, known := range r.Runs {
		if !like(known) {
			continue
		}
		if category == everything {
			return known.All, true
		}
		f, ok := known.Categories[category]
		return f, ok
	}
	return Figures{}, false
}

// times sets the percentiles of what the questions took.
func (r *Run) times(took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))]) / float64(time.Millisecond)
	}
	r.Median, r.P95 = at(0.5), at(0.95)
}
