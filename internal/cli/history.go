package cli

import (
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
)

type historyCommand struct {
	ID string `arg:"" help:"The fact: its id, or the last 8 hex digits."`
	auditFlags
}

// Run implements the command.
func (c *historyCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	filters, err := c.filters()
	if err != nil {
		return err
	}
	h, err := cl.HistoryWhere(inv.Context(), c.ID, filters)
	if err != nil {
		return err
	}
	return inv.Print(h, func(w io.Writer) {
		t := terminal.NewTable(w, "APPLIED", "EVENT", "REASON", "RULE", "BY", "BEFORE", "AFTER")
		now := time.Now()
		for _, ch := range h.Changes {
			t.Row(terminal.Ago(ch.AppliedAt, now), ch.Event, ch.Reason, ch.Rule, ch.DecidedBy, ch.OldMemory, ch.NewMemory)
		}
		t.Flush()
	})
}
