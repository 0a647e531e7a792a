package cli

import (
	"errors"
	"fmt"
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type episodesCommand struct {
	Whose
	Limit  int         `help:"Episodes at most (1 to 1000)." default:"20"`
	After  api.Instant `help:"Only episodes after this time: RFC 3339 or YYYY-MM-DD." placeholder:"INSTANT"`
	Before api.Instant `help:"Only episodes before this time." placeholder:"INSTANT"`
	narrowFlags
	EpisodeWindow string `help:"Only episodes of the last days (30d) or of a duration (12h)." placeholder:"TIME"`
	Cursor        string `help:"Continue where the previous page ended."`
}

// Validate implements kong's hook.
func (c *episodesCommand) Validate() error {
	if c.Limit < 1 || c.Limit > 1000 {
		return errors.New("--limit: is outside 1 to 1000")
	}
	return nil
}

// Run implements the command.
func (c *episodesCommand) Run(inv *app.Invocation) error {
	sel, err := c.Selector(inv.Project())
	if err != nil {
		return err
	}
	filters, err := c.filters()
	if err != nil {
		return err
	}
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	page, err := cl.Recent(inv.Context(), sel, client.ListEpisodes{
		Limit: c.Limit, Cursor: c.Cursor, After: c.After.Time, Before: c.Before.Time,
		Narrow: client.Narrow{Filters: filters, Entity: c.Entity, EpisodeWindow: c.EpisodeWindow},
	})
	if err != nil {
		return err
	}
	return inv.Print(page, func(w io.Writer) {
		now := time.Now()
		t := terminal.NewTable(w, "ID", "WHEN", "USER", "AGENT", "SESSION", "ROLE", "CONTENT")
		for _, e := range page.Episodes {
			t.Row(shortID(e.ID), terminal.Ago(e.Timestamp, now), e.User, e.Agent, e.Session, e.Role, e.Content)
		}
		t.Flush()
		if page.Next != "" {
			_, _ = fmt.Fprintf(w, "more: --cursor %s\n", page.Next)
		}
	})
}
