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

// ExtractionReport holds what an extractor found in labelled utterances.
type ExtractionReport struct {
	Utterances int              `json:"utterances"`
	Categories map[string]Score `json:"categories,omitempty"`
	// Silent counts the utterances that state nothing, Fired those of them in which
	// something was found.
	Silent int `json:"silent"`
	Fired  int `json:"fired"`
	// Dates counts the labels with a date, DatesRight those found with it.
	Dates      int `json:"dates"`
	DatesRight int `json:"dates_right"`
	// Bearing scores whether utterances state anything, Names the names in them, and
	// Typed names with types.
	Bearing Score `json:"bearing"`
	Names   Score `json:"names"`
	Typed   Score `json:"typed"`
	// Outcomes are per utterance, in order.
	Outcomes []Outcome `json:"-"`
}

// Outcome is what was found in one utterance, and where it differs from the
// labels.
type Outcome struct {
	ID       string      `json:"id"`
	Text     string      `json:"text"`
	Facts    []FoundFact `json:"facts"`
	Missed   []Label     `json:"missed,omitempty"`
	Surplus  []FoundFact `json:"surplus,omitempty"`
	Misdated []Label     `json:"misdated,omitempty"`
	Entities []NameLabel `json:"entities,omitempty"`
}

// FoundFact is a candidate as the evaluation shows it.
type FoundFact struct {
	Subject   string     `json:"s"`
	Predicate string     `json:"r"`
	Object    string     `json:"o"`
	Category  string     `json:"category"`
	Negated   bool       `json:"neg"`
	Text      string     `json:"text"`
	Rule      string     `json:"rule"`
	EventTime time.Time  `json:"event_time"`
	ValidFrom *time.Time `json:"valid_from,omitempty"`
}

func (r *ExtractionReport) add(category string, s Score) {
	sum := r.Categories[category]
	sum.sum(s)
	r.Categories[category] = sum
}

// All is the sum over categories.
func (r *ExtractionReport) All() Score {
	var all Score
	for _, s := range r.Categories {
		all.sum(s)
	}
	return all
}

// Write prints a table, in per cent.
func (r *ExtractionReport) Write(out io.Writer) error {
	_, _ = fmt.Fprintf(out, "%d utterances\n", r.Utterances)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(t, "category\tprecision\trecall\tF1\tstated\tfound\tright\t")
	line := func(name string, s Score) {
		_, _ = fmt.Fprintf(t, "%s\t%.1f\t%.1f\t%.1f\t%d\t%d\t%d\t\n", name, s.Precision(), s.Recall(), s.F1(), s.Stated, s.Found, s.Right)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Categories)) {
		line(name, r.Categories[name])
	}
	for _, part := range []struct {
		name  string
		score Score
	}{{everything, r.All()}, {"states a fact", r.Bearing}, {"names", r.Names}, {"names and types", r.Typed}} {
		if part.score != (Score{}) {
			line(part.name, part.score)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Silent > 0 {
		_, _ = fmt.Fprintf(out, "%d of %d utterances that state nothing gave a fact\n", r.Fired, r.Silent)
	}
	if r.Dates > 0 {
		_, _ = fmt.Fprintf(out, "%d of %d dates are right\n", r.DatesRight, r.Dates)
	}
	return nil
}

// WriteOutcomes writes one JSON line per utterance to a file.
func (r *ExtractionReport) WriteOutcomes(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write outcomes: %w", err)
	}
	enc := json.NewEncoder(file)
	enc.SetEscapeHTML(false)
	for _, o := range r.Outcomes {
		if err = enc.Encode(o); err != nil {
			break
		}
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write outcomes: %w", err)
	}
	return nil
}
