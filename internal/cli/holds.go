package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type holdsCommand struct {
	List    holdListCommand    `cmd:"" help:"List the holds, oldest first."`
	Release holdReleaseCommand `cmd:"" help:"Decide a hold now."`
	Dismiss holdDismissCommand `cmd:"" help:"Dismiss a hold: it changes nothing."`
}

type holdListCommand struct {
	Whose
	Limit  int    `help:"At most this many." default:"100"`
	Cursor string `help:"Continue where the previous page ended."`
}

// Run implements the command.
func (c *holdListCommand) Run(inv *app.Invocation) error {
	cl, sel, err := c.asks(inv)
	if err != nil {
		return err
	}
	page, err := cl.Holds(inv.Context(), sel, c.Limit, c.Cursor)
	if err != nil {
		return err
	}
	return inv.Print(page, func(w io.Writer) {
		t := terminal.NewTable(w, "ID", "WHY", "FACT", "TEXT", "COUNT", "SINCE", "DUE")
		now := time.Now()
		for _, h := range page.Holds {
			due := "never"
			if h.Due != nil {
				due = terminal.Ago(*h.Due, now)
			}
			t.Row(shortID(h.ID), h.Why, shortID(h.FactID), h.Text, h.Count, terminal.Ago(h.Since, now), due)
		}
		t.Flush()
		if page.Next != "" {
			_, _ = fmt.Fprintf(w, "more: --cursor %s\n", page.Next)
		}
	})
}

type holdReleaseCommand struct {
	ID string `arg:"" help:"Hold: its id, or the last 8 hex digits."`
}

// Run implements the command.
func (c *holdReleaseCommand) Run(inv *app.Invocation) error {
	return write(inv, func(ctx context.Context, cl *client.Client) (api.Written, error) {
		return cl.Release(ctx, c.ID)
	})
}

type holdDismissCommand struct {
	ID string `arg:"" help:"Hold: its id, or the last 8 hex digits."`
}

// Run implements the command.
func (c *holdDismissCommand) Run(inv *app.Invocation) error {
	return write(inv, func(ctx context.Context, cl *client.Client) (api.Written, error) {
		return cl.Dismiss(ctx, c.ID)
	})
}
