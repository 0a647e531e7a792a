package cli

import (
	"errors"
	"io"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

type ledgerCommand struct {
	Whose
	Accounts bool `help:"Print one line per scope too."`
}

// Run implements the command. A ledger that does not balance is an error.
func (c *ledgerCommand) Run(inv *app.Invocation) error {
	cl, sel, err := c.asks(inv)
	if err != nil {
		return err
	}
	l, err := cl.Ledger(inv.Context(), sel, c.Accounts)
	if err != nil {
		return err
	}
	err = inv.Print(l, func(w io.Writer) {
		t := terminal.NewTable(w, "RULE", "SCOPE", "ACCEPTED", "CONSOLIDATED", "PENDING", "SKIPPED", "CANDIDATES", "DECIDED", "HELD", "DROPPED")
		for _, a := range l.Accounts {
			account(t, a, a.In(inv.Project()).Key())
		}
		for _, a := range l.Totals {
			account(t, a, "all")
		}
		t.Flush()
	})
	if err == nil && !l.Balanced {
		return errors.New("the ledger does not balance")
	}
	return err
}

func account(t *terminal.Table, a api.Account, name string) {
	t.Row(a.Rule, name, a.Accepted, a.Consolidated, a.Pending, a.Skipped, a.Candidates, a.Decided, a.Held, a.Dropped)
}
