package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type factsCommand struct {
	Whose
	ID       string `arg:"" optional:"" help:"One fact: its id, or the last 8 hex digits."`
	Revision uint64 `help:"One version of the fact."`
	Limit    int    `help:"Facts at most." default:"100"`
	narrowFlags
	ValidAt api.Instant `help:"Facts that were valid at this time: RFC 3339 or YYYY-MM-DD." placeholder:"INSTANT"`
	AsOf    api.Instant `help:"Facts as they were known at this time." placeholder:"INSTANT"`
	Kinds   []string    `help:"Kinds of facts; all unless given." placeholder:"KIND"`
	Weak    bool        `help:"Facts with a confidence below 0.3, or that are pruned within 7 days."`
	Closed  bool        `help:"Closed and archived facts too."`
}

// Run implements the command.
func (c *factsCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	if c.Weak {
		return c.weak(inv, cl)
	}
	page, err := c.read(inv, cl)
	if err != nil {
		return err
	}
	return inv.Print(page, func(w io.Writer) {
		now := time.Now()
		t := terminal.NewTable(w, "ID", "REV", "CATEGORY", "TEXT", "CONFIDENCE", "SINCE", "STATE")
		for _, f := range page.Facts {
			add, state := t.Row, factState(f, now)
			if state != "" {
				add = t.FaintRow
			}
			add(shortID(f.ID), f.Revision, f.Category, f.Text, fmt.Sprintf("%.2f", f.Confidence), terminal.Ago(f.ValidFrom, now), cmp.Or(state, "known"))
		}
		t.Flush()
		for _, warning := range page.Warnings {
			_, _ = fmt.Fprintln(w, "note:", warning)
		}
	})
}

func (c *factsCommand) weak(inv *app.Invocation, cl *client.Client) error {
	if c.ID != "" || c.Closed || c.Where != "" || c.Entity != "" || len(c.Kinds) > 0 || !c.ValidAt.IsZero() || !c.AsOf.IsZero() {
		return errors.New("--weak can be combined only with --user, --agent, --session, --all-users and --limit")
	}
	sel, err := c.Selector(inv.Project())
	if err != nil {
		return err
	}
	out, err := cl.WeakFacts(inv.Context(), sel, c.Limit, "")
	if err != nil {
		return err
	}
	return inv.Print(out, func(w io.Writer) {
		now := time.Now()
		t := terminal.NewTable(w, "ID", "CATEGORY", "TEXT", "CONFIDENCE", "LAST READ", "PRUNED")
		for _, f := range out.Facts {
			pruned := "never"
			if f.PrunedAt != nil {
				pruned = terminal.Ago(*f.PrunedAt, now)
			}
			t.Row(shortID(f.ID), f.Category, f.Text, fmt.Sprintf("%.2f", f.Confidence), terminal.Ago(f.LastAccessed, now), pruned)
		}
		t.Flush()
	})
}

// read returns the fact that is named, or else a list.
func (c *factsCommand) read(inv *app.Invocation, cl *client.Client) (api.FactPage, error) {
	if c.ID != "" && !c.AsOf.IsZero() {
		f, err := cl.FactAsOf(inv.Context(), c.ID, c.AsOf.Time)
		return api.FactPage{Facts: []api.Fact{f}}, err
	}
	if c.ID != "" {
		f, err := cl.Fact(inv.Context(), c.ID, c.Revision)
		return api.FactPage{Facts: []api.Fact{f}}, err
	}
	sel, err := c.Selector(inv.Project())
	if err != nil {
		return api.FactPage{}, err
	}
	filters, err := c.filters()
	if err != nil {
		return api.FactPage{}, err
	}
	return cl.Facts(inv.Context(), sel, client.ListFacts{Limit: c.Limit, Closed: c.Closed, ValidAt: c.ValidAt.Time, AsOf: c.AsOf.Time, Kinds: c.Kinds, Filters: filters, Entity: c.Entity})
}

// factState describes a fact that is closed or archived; it is empty for any other.
func factState(f api.Fact, now time.Time) string {
	switch {
	case f.ValidUntil != nil && !f.ValidUntil.After(now):
		return "closed " + terminal.Ago(*f.ValidUntil, now)
	case f.ArchivedAt != nil:
		return "archived " + terminal.Ago(*f.ArchivedAt, now)
	}
	return ""
}
