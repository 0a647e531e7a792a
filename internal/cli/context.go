package cli

import (
	"fmt"
	"io"
	"strings"

	"palimpsest/internal/app"
	"palimpsest/pkg/api"
)

type contextCommand struct {
	Whose
	Text          []string `arg:"" help:"The message or question to assemble for."`
	Budget        int      `help:"Tokens at most; 1000 or 3000 by the question unless given."`
	EpisodeWindow string   `help:"Only episodes of the last days (30d) or of a duration (12h)." placeholder:"TIME"`
	FirstTurn     bool     `help:"Include the summary of the latest session."`
	narrowFlags
}

// Run implements the command.
func (c *contextCommand) Run(inv *app.Invocation) error {
	filters, err := c.filters()
	if err != nil {
		return err
	}
	cl, _, err := c.asks(inv)
	if err != nil {
		return err
	}
	block, err := cl.Assemble(inv.Context(), api.ContextQuery{
		Selector: c.body(), Text: strings.Join(c.Text, " "),
		Budget: c.Budget, Filters: filters, Entity: c.Entity, EpisodeWindow: c.EpisodeWindow, FirstTurn: c.FirstTurn,
	})
	if err != nil {
		return err
	}
	return inv.Print(block, func(w io.Writer) { _, _ = fmt.Fprint(w, block.Context) })
}
