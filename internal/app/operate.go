package app

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
)

type ledgerCommand struct {
	Whose
	Accounts bool `help:"One line per scope besides the totals."`
}

// Run implements the command. A ledger that does not balance is an error.
func (c *ledgerCommand) Run(inv *invocation) error {
	sel, err := c.Selector(inv.line.Project)
	if err != nil {
		return err
	}
	cl, err := inv.client()
	if err != nil {
		return err
	}
	l, err := cl.Ledger(inv.ctx, sel, c.Accounts)
	if err != nil {
		return err
	}
	err = inv.print(l, func(w io.Writer) {
		t := terminal.NewTable(w, "RULE", "SCOPE", "ACCEPTED", "CONSOLIDATED", "PENDING", "SKIPPED", "CANDIDATES", "DECIDED", "HELD", "DROPPED")
		for _, a := range l.Accounts {
			account(t, a, a.In(inv.line.Project).Key())
		}
		for _, a := range l.Totals {
			account(t, a, "all")
		}
		t.Flush()
	})
	if err == nil && !l.Balanced {
		return fmt.Errorf("the ledger does not balance")
	}
	return err
}

func account(t *terminal.Table, a api.Account, name string) {
	t.Row(a.Rule, name, a.Accepted, a.Consolidated, a.Pending, a.Skipped, a.Candidates, a.Decided, a.Held, a.Dropped)
}

type configCommand struct {
	Print configPrintCommand `cmd:"" help:"Print the effective configuration and where each value comes from."`
	Check configCheckCommand `cmd:"" help:"Check the configuration."`
}

type configPrintCommand struct{}

// Run implements the command.
func (c *configPrintCommand) Run(inv *invocation) error {
	_, settings, err := inv.configuration(nil)
	if err != nil {
		return err
	}
	all := settings.All()
	return inv.print(all, func(w io.Writer) {
		t := terminal.NewTable(w, "KEY", "VALUE", "FROM")
		for _, s := range all {
			t.Row(s.Key, short(s.Value), s.Origin)
		}
		t.Flush()
	})
}

// short keeps one long value from widening a column for all.
func short(value string) string {
	const most = 60
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return value
}

// writable reports why a data directory cannot be used; one that does not exist
// yet is created when it is needed.
func writable(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return fmt.Errorf("data: %w", err)
	case !info.IsDir():
		return fmt.Errorf("data: %s is not a directory", dir)
	}
	f, err := os.CreateTemp(dir, ".check-*")
	if err != nil {
		return fmt.Errorf("data: %s is not writable: %w", dir, err)
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

type versionCommand struct{}

// Run implements the command.
func (c *versionCommand) Run(inv *invocation) error {
	v := map[string]string{"version": version()}
	return inv.print(v, func(w io.Writer) { _, _ = fmt.Fprintln(w, v["version"]) })
}

// version is what the build recorded of the module, or else of its revision.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
