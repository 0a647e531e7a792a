package cli

import (
	"fmt"
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

type explainCommand struct {
	ID string `arg:"" help:"The fact: its id, or the last 8 hex digits."`
}

// Run implements the command.
func (c *explainCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	e, err := cl.Explain(inv.Context(), c.ID)
	if err != nil {
		return err
	}
	return inv.Print(e, func(w io.Writer) { explainTo(w, e) })
}

func explainTo(w io.Writer, e api.Explanation) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	now := time.Now()
	state := factState(e.Fact, now)
	if state != "" {
		state = ", " + terminal.Bad(w, state)
	}
	say("%s  (%s, revision %d%s)", terminal.Bold(w, terminal.OneLine(e.Fact.Text)), e.Fact.ID, e.Fact.Revision, state)
	if e.Quote != "" {
		say("  because of: %q", e.Quote)
	}
	for _, ep := range e.Episodes {
		say("  %s said %s: %s  (%s)", ep.Role, terminal.Ago(ep.Timestamp, now), terminal.OneLine(ep.Content), shortID(ep.ID))
	}
	for _, d := range e.Decisions {
		say("  decided: %s (%s) by %s, rule %s / %s, %s", d.Event, d.Reason, d.DecidedBy, d.Rule, d.RuleID, terminal.Ago(d.AppliedAt, now))
	}
	for _, v := range e.Versions {
		say("  before: %s  (revision %d)", terminal.OneLine(v.Text), v.Revision)
	}
	for _, en := range e.Entities {
		say("  mentions: %s (%s)", en.Name, en.Type)
	}
}
