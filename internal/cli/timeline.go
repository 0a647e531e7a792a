package cli

import (
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
)

type timelineCommand struct {
	Whose
	Name  string `arg:"" help:"Name or alias of the entity; user for the user."`
	Limit int    `help:"Versions of facts at most, the newest." default:"100"`
}

// Run implements the command.
func (c *timelineCommand) Run(inv *app.Invocation) error {
	cl, sel, err := c.asks(inv)
	if err != nil {
		return err
	}
	out, err := cl.Timeline(inv.Context(), sel, c.Name, c.Limit)
	if err != nil {
		return err
	}
	return inv.Print(out, func(w io.Writer) {
		t := terminal.NewTable(w, "SINCE", "UNTIL", "ID", "REV", "TEXT")
		for _, f := range out.Facts {
			until := "now"
			if f.ValidUntil != nil {
				until = f.ValidUntil.UTC().Format(time.DateOnly)
			}
			t.Row(f.ValidFrom.UTC().Format(time.DateOnly), until, shortID(f.ID), f.Revision, f.Text)
		}
		t.Flush()
	})
}
