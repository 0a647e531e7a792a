package cli

import (
	"fmt"
	"io"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

type undoCommand struct {
	Request    string   `help:"Deltas of a request: its correlation id. That of an undo reverses the undo." placeholder:"ID"`
	Episode    string   `help:"Deltas of a message." placeholder:"ID"`
	RuleRun    uint64   `help:"Deltas of one run of a rule: the sequence that replay shows." placeholder:"SEQUENCE"`
	SourceNode string   `help:"Deltas of the messages of a source node." placeholder:"NAME"`
	Session    string   `help:"Deltas of a session." placeholder:"ID"`
	Rule       string   `help:"Deltas of a consolidation rule, or of a pattern or prompt, by its rule id." placeholder:"ID"`
	Since      string   `help:"Effects that were committed at this time or later: RFC 3339 or YYYY-MM-DD." placeholder:"TIME"`
	User       string   `help:"Only in the memory of this user." placeholder:"ID"`
	Agent      string   `help:"Only in the memory of this agent." placeholder:"ID"`
	Include    []string `help:"Facts to undo although later changes conflict; all for all of them." placeholder:"FACT"`
	DryRun     bool     `help:"Only show what would change."`
}

// Run implements the command.
func (c *undoCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	out, err := cl.Undo(inv.Context(), api.Undo{
		User: named(c.User), Agent: named(c.Agent), Request: c.Request, Episode: c.Episode, RuleRun: c.RuleRun, SourceNode: c.SourceNode,
		Session: c.Session, Rule: c.Rule, Since: c.Since, Include: c.Include, DryRun: c.DryRun,
	})
	if err != nil {
		return err
	}
	return inv.Print(out, func(w io.Writer) { tellUndo(w, out, c.DryRun) })
}

func named(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

// tellChanges lists the changes of an undo, and the facts that it leaves alone.
func tellChanges(w io.Writer, plan *api.UndoPlan) {
	if len(plan.Changes) > 0 {
		t := terminal.NewTable(w, "EVENT", "ID", "HOLDS AFTERWARDS")
		for _, change := range plan.Changes {
			t.Row(change.Event, shortID(change.ID), change.Memory)
		}
		t.Flush()
	}
	for _, c := range plan.Conflicts {
		_, _ = fmt.Fprintf(w, "skipped %s (%s): %s\n", c.ID, c.Memory, c.Why)
		for _, t := range c.Later {
			_, _ = fmt.Fprintf(w, "  %s %s %s %v\n", t.At.Format(time.RFC3339), t.Kind, t.Reason, t.Sources)
		}
	}
}

func tellUndo(w io.Writer, out api.Written, dry bool) {
	plan := out.Undo
	tellChanges(w, plan)
	verb := "changed"
	if dry {
		verb = "to change"
	}
	_, _ = fmt.Fprintf(w, "%d %s, %d conflicts", len(plan.Changes), verb, len(plan.Conflicts))
	if plan.Omitted > 0 {
		_, _ = fmt.Fprintf(w, ", %d more", plan.Omitted)
	}
	_, _ = fmt.Fprintln(w)
	if !dry && out.CorrelationID != "" {
		_, _ = fmt.Fprintf(w, "To bring it back: palimpsest undo --request %s\n", out.CorrelationID)
	}
}

type quarantineCommand struct {
	Episode    string `help:"One message." placeholder:"ID"`
	Session    string `help:"All messages of a session." placeholder:"ID"`
	SourceNode string `help:"All messages of a source node." placeholder:"NAME"`
	User       string `help:"Only in the memory of this user." placeholder:"ID"`
	Agent      string `help:"Only in the memory of this agent." placeholder:"ID"`
	Release    string `help:"End the quarantine of this request: its correlation id." placeholder:"ID"`
}

// Run implements the command.
func (c *quarantineCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	var out api.Written
	if c.Release != "" {
		out, err = cl.Trust(inv.Context(), c.Release)
	} else {
		out, err = cl.Quarantine(inv.Context(), api.Quarantine{
			User: named(c.User), Agent: named(c.Agent), Episode: c.Episode, Session: c.Session, SourceNode: c.SourceNode,
		})
	}
	if err != nil {
		return err
	}
	return inv.Print(out, func(w io.Writer) {
		tellChanges(w, out.Undo)
		if c.Release == "" {
			_, _ = fmt.Fprintf(w, "To trust it again: palimpsest quarantine --release %s\n", out.CorrelationID)
		}
	})
}
