package cli

import (
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
)

type historyCommand struct {
	ID string `arg:"" help:"The fact."`
}

// Run implements the command.
func (c *historyCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	h, err := cl.History(inv.Context(), c.ID)
	if err != nil {
		return err
	}
	return inv.Print(h, func(w io.Writer) {
		t := terminal.NewTable(w, "APPLIED", "EVENT", "REASON", "RULE", "BY", "BEFORE", "AFTER")
		for _, ch := range h.Changes {
			t.Row(ch.AppliedAt.Format(time.RFC3339), ch.Event, ch.Reason, ch.Rule, ch.DecidedBy, terminal.OneLine(ch.OldMemory), terminal.OneLine(ch.NewMemory))
		}
		t.Flush()
	})
}
