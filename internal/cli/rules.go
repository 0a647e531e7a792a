package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

type rulesCommand struct {
	List   ruleListCommand   `cmd:"" default:"1" help:"List the rules."`
	Run    ruleRunCommand    `cmd:"" help:"Run a rule in a scope now."`
	DryRun ruleDryRunCommand `cmd:"" help:"Show the deltas of a run; apply nothing."`
}

type ruleListCommand struct{}

// Run implements the command.
func (c *ruleListCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	list, err := cl.Rules(inv.Context())
	if err != nil {
		return err
	}
	return inv.Print(list, func(w io.Writer) {
		t := terminal.NewTable(w, "RULE", "DUE", "READS", "EXTRACTOR", "DECIDER", "ENABLED")
		for _, r := range list.Rules {
			reads := cmp.Or(r.When, "all")
			if len(r.Steps) > 0 {
				reads = "no messages: " + strings.Join(r.Steps, ", ")
			}
			t.Row(r.ID, due(r), reads, cmp.Or(r.Extractor, "default"), cmp.Or(r.Decider, "default"), r.Enabled)
		}
		t.Flush()
	})
}

func due(r api.Rule) string {
	var parts []string
	if r.Every > 0 {
		parts = append(parts, fmt.Sprintf("every %d", r.Every))
	}
	if r.SessionEnd {
		parts = append(parts, "session end")
	}
	if r.Request {
		parts = append(parts, "on request")
	}
	if r.Cron != "" {
		parts = append(parts, strings.TrimSpace("cron "+r.Cron+" "+r.TZ))
	}
	return strings.Join(parts, ", ")
}

// inScope names the scope that a rule runs in.
type inScope struct {
	ID      string `arg:"" help:"The rule."`
	User    string `help:"User." placeholder:"ID"`
	Agent   string `help:"Agent." placeholder:"ID"`
	Session string `help:"Session whose user is unknown." placeholder:"ID"`
}

func (c inScope) body() api.RunRule {
	return api.RunRule{Scope: api.Scope{User: c.User, Agent: c.Agent, Session: c.Session}}
}

type ruleRunCommand struct{ inScope }

// Run implements the command. A run reads a bounded number of episodes, so it goes
// on until none remains.
func (c *ruleRunCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	body := c.body()
	body.Wait = true
	run, err := cl.RunRule(inv.Context(), c.ID, body)
	first, facts := run.From, run.Facts
	for err == nil && run.Status == "done" && run.More {
		run, err = cl.RunRule(inv.Context(), c.ID, body)
		facts += run.Facts
	}
	if err != nil {
		return err
	}
	run.From = min(first, run.From)
	if run.Facts = facts; facts > 0 && run.Status == "idle" {
		run.Status = "done"
	}
	return inv.Print(run, func(w io.Writer) {
		switch run.Status {
		case "idle":
			_, _ = fmt.Fprintf(w, "%s: nothing is pending\n", run.Rule)
		case "done":
			if run.Facts > 0 {
				_, _ = fmt.Fprintf(w, "%s: %d facts\n", run.Rule, facts)
				return
			}
			_, _ = fmt.Fprintf(w, "%s: %d episodes read\n", run.Rule, run.To-run.From)
		default:
			_, _ = fmt.Fprintf(w, "%s: accepted; it is still under way\n", run.Rule)
		}
	})
}

type ruleDryRunCommand struct{ inScope }

// Run implements the command.
func (c *ruleDryRunCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	out, err := cl.RehearseRule(inv.Context(), c.ID, c.body())
	if err != nil {
		return err
	}
	return inv.Print(out, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%d episodes, %d candidates, %d deltas; nothing is applied\n", out.To-out.From, out.Candidates, len(out.Deltas))
		if len(out.Deltas) == 0 {
			return
		}
		t := terminal.NewTable(w, "EVENT", "REASON", "FACT", "TEXT")
		for _, d := range out.Deltas {
			t.Row(d.Event, d.Reason, shortID(cmp.Or(d.ID, strings.Join(d.Replaces, ","))), d.Memory)
		}
		t.Flush()
	})
}
