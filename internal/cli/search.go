package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

type searchCommand struct {
	Whose
	Text  []string `arg:"" help:"Question or words."`
	Limit int      `help:"Results at most (1 to 1000); 5 or 20 by the question unless given."`
	narrowFlags
	Kinds         []string `help:"Kinds of facts; all unless given." placeholder:"KIND"`
	EpisodeWindow string   `help:"Only episodes of the last days (30d) or of a duration (12h)." placeholder:"TIME"`
	MinScore      *float64 `help:"Leave out results with a lower score (0 to 1); query.search.min_score of the server unless given." placeholder:"SCORE"`
	Explain       bool     `help:"Show where each channel ranked each result."`
}

// Run implements the command.
func (c *searchCommand) Run(inv *app.Invocation) error {
	filters, err := c.filters()
	if err != nil {
		return err
	}
	cl, _, err := c.asks(inv)
	if err != nil {
		return err
	}
	found, err := cl.Search(inv.Context(), api.Search{
		Selector: c.body(),
		Text:     strings.Join(c.Text, " "), Limit: c.Limit, Explain: c.Explain, MinScore: c.MinScore,
		Filters: filters, Entity: c.Entity, Kinds: c.Kinds, EpisodeWindow: c.EpisodeWindow,
	})
	if err != nil {
		return err
	}
	return inv.Print(found, func(w io.Writer) {
		for _, h := range found.Results {
			_, _ = fmt.Fprintf(w, "%.3f  %-7s  %s  (%s)\n", h.Score, h.Type, terminal.OneLine(h.Text), shortID(h.ID))
			for _, name := range slices.Sorted(maps.Keys(h.Channels)) {
				at := h.Channels[name]
				_, _ = fmt.Fprintf(w, "       %s: rank %d, score %.4g\n", name, at.Rank, at.Score)
			}
		}
		if len(found.Degraded) > 0 {
			_, _ = fmt.Fprintf(w, "without: %s\n", strings.Join(found.Degraded, ", "))
		}
	})
}
