package cli

import (
	"fmt"
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type factsCommand struct {
	app.Whose
	ID       string `arg:"" optional:"" help:"One fact."`
	Revision uint64 `help:"One version of the fact."`
	Limit    int    `help:"Facts at most." default:"100"`
	Closed   bool   `help:"Closed and archived facts too."`
}

// Run implements the command.
func (c *factsCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	page, err := c.read(inv, cl)
	if err != nil {
		return err
	}
	return inv.Print(page, func(w io.Writer) {
		t := terminal.NewTable(w, "ID", "REV", "CATEGORY", "TEXT", "CONFIDENCE", "SINCE")
		for _, f := range page.Facts {
			t.Row(f.ID, f.Revision, f.Category, terminal.OneLine(f.Text), fmt.Sprintf("%.2f", f.Confidence), day(f.ValidFrom))
		}
		t.Flush()
	})
}

// read returns the fact that is named, or else a list.
func (c *factsCommand) read(inv *app.Invocation, cl *client.Client) (api.FactPage, error) {
	if c.ID != "" {
		f, err := cl.Fact(inv.Context(), c.ID, c.Revision)
		return api.FactPage{Facts: []api.Fact{f}}, err
	}
	sel, err := c.Selector(inv.Project())
	if err != nil {
		return api.FactPage{}, err
	}
	return cl.Facts(inv.Context(), sel, client.ListFacts{Limit: c.Limit, Closed: c.Closed})
}

func day(at time.Time) string { return at.Format(time.DateOnly) }
