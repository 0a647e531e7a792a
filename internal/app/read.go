package app

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type searchCommand struct {
	whose
	Text    []string `arg:"" help:"What to look for."`
	Limit   int      `help:"Results at most (1 to 1000); 5 or 20 by the question unless given."`
	Explain bool     `help:"Show where each channel ranked each result."`
}

// Run implements the command.
func (c *searchCommand) Run(inv *invocation) error {
	if _, err := c.selector(inv.line.Project); err != nil {
		return err
	}
	cl, err := inv.client()
	if err != nil {
		return err
	}
	found, err := cl.Search(inv.ctx, api.Search{
		Selector: api.Selector{User: c.User, Agent: c.Agent, Session: c.Session, All: c.AllUsers},
		Text:     strings.Join(c.Text, " "), Limit: c.Limit, Explain: c.Explain,
	})
	if err != nil {
		return err
	}
	return inv.print(found, func(w io.Writer) {
		for _, h := range found.Results {
			_, _ = fmt.Fprintf(w, "%.3f  %-7s  %s  (%s)\n", h.Score, h.Type, oneLine(h.Text), h.ID)
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

// oneLine keeps a text from breaking a listing.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

type factsCommand struct {
	whose
	ID       string `arg:"" optional:"" help:"One fact."`
	Revision uint64 `help:"One version of the fact."`
	Limit    int    `help:"Facts at most." default:"100"`
	Closed   bool   `help:"Closed and archived facts too."`
}

// Run implements the command.
func (c *factsCommand) Run(inv *invocation) error {
	cl, err := inv.client()
	if err != nil {
		return err
	}
	page, err := c.read(inv, cl)
	if err != nil {
		return err
	}
	return inv.print(page, func(w io.Writer) {
		t := table(w, "ID", "REV", "CATEGORY", "TEXT", "CONFIDENCE", "SINCE")
		for _, f := range page.Facts {
			row(t, f.ID, f.Revision, f.Category, oneLine(f.Text), fmt.Sprintf("%.2f", f.Confidence), day(f.ValidFrom))
		}
		_ = t.Flush()
	})
}

// read returns the fact that is named, or else a list.
func (c *factsCommand) read(inv *invocation, cl *client.Client) (api.FactPage, error) {
	if c.ID != "" {
		f, err := cl.Fact(inv.ctx, c.ID, c.Revision)
		return api.FactPage{Facts: []api.Fact{f}}, err
	}
	sel, err := c.selector(inv.line.Project)
	if err != nil {
		return api.FactPage{}, err
	}
	return cl.Facts(inv.ctx, sel, client.ListFacts{Limit: c.Limit, Closed: c.Closed})
}

func table(w io.Writer, columns ...any) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row(t, columns...)
	return t
}

func row(t *tabwriter.Writer, cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = fmt.Sprint(c)
	}
	_, _ = fmt.Fprintln(t, strings.Join(text, "\t"))
}

func day(at time.Time) string { return at.Format(time.DateOnly) }

type historyCommand struct {
	ID string `arg:"" help:"The fact."`
}

// Run implements the command.
func (c *historyCommand) Run(inv *invocation) error {
	cl, err := inv.client()
	if err != nil {
		return err
	}
	h, err := cl.History(inv.ctx, c.ID)
	if err != nil {
		return err
	}
	return inv.print(h, func(w io.Writer) {
		t := table(w, "APPLIED", "EVENT", "REASON", "RULE", "BY", "BEFORE", "AFTER")
		for _, ch := range h.Changes {
			row(t, ch.AppliedAt.Format(time.RFC3339), ch.Event, ch.Reason, ch.Rule, ch.DecidedBy, oneLine(ch.OldMemory), oneLine(ch.NewMemory))
		}
		_ = t.Flush()
	})
}

type explainCommand struct {
	ID string `arg:"" help:"The fact."`
}

// Run implements the command.
func (c *explainCommand) Run(inv *invocation) error {
	cl, err := inv.client()
	if err != nil {
		return err
	}
	e, err := cl.Explain(inv.ctx, c.ID)
	if err != nil {
		return err
	}
	return inv.print(e, func(w io.Writer) { explainTo(w, e) })
}

func explainTo(w io.Writer, e api.Explanation) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	say("%s  (%s, revision %d)", oneLine(e.Fact.Text), e.Fact.ID, e.Fact.Revision)
	if e.Quote != "" {
		say("  because of: %q", e.Quote)
	}
	for _, ep := range e.Episodes {
		say("  %s %s said: %s  (%s)", ep.Timestamp.Format(time.RFC3339), ep.Role, oneLine(ep.Content), ep.ID)
	}
	if d := e.Decision; d != nil {
		say("  decided: %s (%s) by %s, rule %s / %s, %s", d.Event, d.Reason, d.DecidedBy, d.Rule, d.RuleID, d.AppliedAt.Format(time.RFC3339))
	}
	for _, v := range e.Versions {
		say("  before: %s  (revision %d)", oneLine(v.Text), v.Revision)
	}
	for _, en := range e.Entities {
		say("  mentions: %s (%s)", en.Name, en.Type)
	}
}

type exportCommand struct {
	whose
	Content bool `help:"Leave out wall-clock fields, to compare two installations."`
}

// Run implements the command.
func (c *exportCommand) Run(inv *invocation) error {
	sel, err := c.selector(inv.line.Project)
	if err != nil {
		return err
	}
	cl, err := inv.client()
	if err != nil {
		return err
	}
	for line, err := range cl.Export(inv.ctx, sel, c.Content) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(inv.term.Out, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}
