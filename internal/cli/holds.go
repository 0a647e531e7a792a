package cli

import (
	"fmt"
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

type holdsCommand struct {
	List    holdListCommand    `cmd:"" help:"List what waits before it changes what is known, oldest first."`
	Release holdReleaseCommand `cmd:"" help:"Decide on it now."`
}

type holdListCommand struct {
	app.Whose
	Limit  int    `help:"At most this many." default:"100"`
	Cursor string `help:"Continue where the page before ended."`
}

// Run implements the command.
func (c *holdListCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	sel, err := c.Selector(inv.Project())
	if err != nil {
		return err
	}
	page, err := cl.Holds(inv.Context(), sel, c.Limit, c.Cursor)
	if err != nil {
		return err
	}
	return inv.Print(page, func(w io.Writer) {
		t := terminal.NewTable(w, "ID", "WHY", "FACT", "TEXT", "COUNT", "SINCE", "DUE")
		for _, h := range page.Holds {
			due := "never"
			if h.Due != nil {
				due = h.Due.Format(time.RFC3339)
			}
			t.Row(h.ID, h.Why, h.FactID, terminal.OneLine(h.Text), h.Count, h.Since.Format(time.RFC3339), due)
		}
		t.Flush()
		if page.Next != "" {
			_, _ = fmt.Fprintf(w, "more: --cursor %s\n", page.Next)
		}
	})
}

type holdReleaseCommand struct {
	ID string `arg:"" help:"Identifier of what is held."`
}

// Run implements the command.
func (c *holdReleaseCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	out, err := cl.Release(inv.Context(), c.ID)
	if err != nil {
		return err
	}
	return inv.Print(out, func(w io.Writer) { releaseTo(w, out) })
}

// releaseTo says what became of it.
func releaseTo(w io.Writer, out api.Written) {
	if len(out.Results) == 0 {
		_, _ = fmt.Fprintln(w, out.Status)
	}
	for _, r := range out.Results {
		_, _ = fmt.Fprintf(w, "%s %s (%s)  %s\n", r.Event, r.ID, r.Reason, terminal.OneLine(r.Memory))
	}
}
