package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// negligible is the part of a figure by which it may get worse without being a
// regression even where the rounds show no noise, as with sizes.
const negligible = 0.01

// Change is a figure before and after.
type Change struct {
	Name string  `json:"name"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
	Unit string  `json:"unit"`
	// Part is by how much of its earlier value the figure changed.
	Part float64 `json:"part"`
	// Noise is the larger spread (max − min) of the two, as a part of the
	// earlier value.
	Noise float64 `json:"noise"`
	// Regressed and Improved hold where every round after is on one side of
	// every round before: what moves less is noise.
	Regressed bool `json:"regressed,omitempty"`
	Improved  bool `json:"improved,omitempty"`
}

// Comparison is two reports side by side.
type Comparison struct {
	Changes []Change `json:"changes"`
	// Unlike says in what the two runs differ so that they may not be compared.
	Unlike []string `json:"unlike,omitempty"`
}

// Load reads a report that was written as JSON.
func Load(path string) (Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Report{}, fmt.Errorf("read earlier report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, fmt.Errorf("read earlier report %s: %w", path, err)
	}
	if len(r.Measures) == 0 {
		return Report{}, fmt.Errorf("read earlier report %s: it holds no measures", path)
	}
	return r, nil
}

// Compare pairs the figures that both reports have, in the order of after.
func Compare(before, after Report) Comparison {
	old := map[string]Figure{}
	for _, m := range before.Measures {
		for _, f := range m.Figures {
			old[f.Name] = f
		}
	}
	var c Comparison
	for _, m := range after.Measures {
		for _, f := range m.Figures {
			if was, ok := old[f.Name]; ok && was.Unit == f.Unit {
				c.Changes = append(c.Changes, change(was, f))
			}
		}
	}
	for _, d := range []struct {
		what       string
		before, is any
	}{
		{"platform", before.Platform, after.Platform},
		{"processors", before.CPUs, after.CPUs},
		{"Go", before.Go, after.Go},
		{"quick", before.Quick, after.Quick},
	} {
		if d.before != d.is {
			c.Unlike = append(c.Unlike, fmt.Sprintf("%s: %v before, %v now", d.what, d.before, d.is))
		}
	}
	return c
}

func change(was, is Figure) Change {
	c := Change{Name: is.Name, From: was.Median, To: is.Median, Unit: is.Unit}
	if was.Median != 0 {
		c.Part = (is.Median - was.Median) / was.Median
		c.Noise = max(was.Max-was.Min, is.Max-is.Min) / was.Median
	}
	switch worse, better := beyond(was, is); {
	case c.Part > -negligible && c.Part < negligible:
	case worse:
		c.Regressed = true
	case better:
		c.Improved = true
	}
	return c
}

// beyond compares the ranges of the rounds.
func beyond(was, is Figure) (worse, better bool) {
	rose, fell := is.Min > was.Max, is.Max < was.Min
	if is.Better == Higher {
		return fell, rose
	}
	return rose, fell
}

// Regressed counts the figures that got worse beyond the noise.
func (c Comparison) Regressed() int {
	n := 0
	for _, change := range c.Changes {
		if change.Regressed {
			n++
		}
	}
	return n
}

// Write prints the comparison for a reader.
func (c Comparison) Write(w io.Writer) error {
	p := &printer{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	for _, s := range c.Unlike {
		p.line("not alike: %s", s)
	}
	p.line("FIGURE\tBEFORE\tNOW\tCHANGE\tNOISE\t")
	for _, change := range c.Changes {
		mark := ""
		switch {
		case change.Regressed:
			mark = "worse"
		case change.Improved:
			mark = "better"
		}
		p.line("%s\t%s\t%s %s\t%+.1f %%\t± %.1f %%\t%s", change.Name, number(change.From), number(change.To), change.Unit,
			100*change.Part, 50*change.Noise, mark)
	}
	p.flush()
	return p.err
}
