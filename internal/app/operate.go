package app

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"palimpsest/pkg/api"
)

type ledgerCommand struct {
	whose
	Accounts bool `help:"One line per scope besides the totals."`
}

// Run implements the command. A ledger that does not balance is an error.
func (c *ledgerCommand) Run(inv *invocation) error {
	cl, err := inv.client()
	if err != nil {
		return err
	}
	l, err := cl.Ledger(inv.ctx, c.selector(inv.line.Project), c.Accounts)
	if err != nil {
		return err
	}
	err = inv.print(l, func(w io.Writer) {
		t := table(w, "RULE", "SCOPE", "ACCEPTED", "CONSOLIDATED", "PENDING", "SKIPPED", "CANDIDATES", "DECIDED", "HELD", "DROPPED")
		for _, a := range l.Accounts {
			account(t.Write, a, a.In(inv.line.Project).Key())
		}
		for _, a := range l.Totals {
			account(t.Write, a, "all")
		}
		_ = t.Flush()
	})
	if err == nil && !l.Balanced {
		return fmt.Errorf("the ledger does not balance")
	}
	return err
}

func account(write func([]byte) (int, error), a api.Account, name string) {
	_, _ = write(fmt.Appendf(nil, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n",
		a.Rule, name, a.Accepted, a.Consolidated, a.Pending, a.Skipped, a.Candidates, a.Decided, a.Held, a.Dropped))
}

type deadletterCommand struct {
	List  letterListCommand  `cmd:"" help:"List refused messages, oldest first."`
	Show  letterShowCommand  `cmd:"" help:"Show one with its body."`
	Retry letterRetryCommand `cmd:"" help:"Hand one to its service again."`
	Drop  letterDropCommand  `cmd:"" help:"Forget one."`
}

type letterListCommand struct {
	After uint64 `help:"Continue behind this sequence."`
	Limit int    `help:"Letters at most." default:"100"`
}

// Run implements the command.
func (c *letterListCommand) Run(inv *invocation) error {
	cl, err := inv.client()
	if err != nil {
		return err
	}
	page, err := cl.DeadLetters(inv.ctx, c.After, c.Limit)
	if err != nil {
		return err
	}
	return inv.print(page, func(w io.Writer) {
		t := table(w, "SEQ", "SERVICE", "CODE", "FIELD", "REASON", "BURIED")
		for _, l := range page.Letters {
			row(t, l.Sequence, l.Service, l.Code, l.Field, oneLine(l.Reason), l.BuriedAt.Format(time.RFC3339))
		}
		_ = t.Flush()
	})
}

type letterCommand struct {
	Sequence uint64 `arg:"" help:"The letter's sequence."`
}

type letterShowCommand struct{ letterCommand }

// Run implements the command.
func (c *letterShowCommand) Run(inv *invocation) error {
	cl, err := inv.client()
	if err != nil {
		return err
	}
	l, err := cl.DeadLetter(inv.ctx, c.Sequence)
	if err != nil {
		return err
	}
	return inv.print(l, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s %s: %s: %s\non %s (%s %d), attempt %d, %d bytes, sha256 %s\n%s\n",
			l.Service, l.Code, l.Field, l.Reason, l.Subject, l.Stream, l.MessageAt, l.Attempts, l.Size, l.SHA256, l.Data)
	})
}

type letterRetryCommand struct{ letterCommand }

// Run implements the command.
func (c *letterRetryCommand) Run(inv *invocation) error {
	cl, err := inv.client()
	if err != nil {
		return err
	}
	return inv.settled(cl.RetryDeadLetter(inv.ctx, c.Sequence))
}

type letterDropCommand struct{ letterCommand }

// Run implements the command.
func (c *letterDropCommand) Run(inv *invocation) error {
	cl, err := inv.client()
	if err != nil {
		return err
	}
	return inv.settled(cl.DropDeadLetter(inv.ctx, c.Sequence))
}

func (inv *invocation) settled(s api.Settled, err error) error {
	if err != nil {
		return err
	}
	return inv.print(s, func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s %d\n", s.Action, s.Sequence) })
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
		t := table(w, "KEY", "VALUE", "FROM")
		for _, s := range all {
			row(t, s.Key, short(s.Value), s.Origin)
		}
		_ = t.Flush()
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

type configCheckCommand struct{}

// Run implements the command.
func (c *configCheckCommand) Run(inv *invocation) error {
	cfg, _, err := inv.configuration(nil)
	if err != nil {
		return err
	}
	if err := writable(cfg.Data); err != nil {
		return err
	}
	return inv.print(map[string]bool{"ok": true}, func(w io.Writer) { _, _ = fmt.Fprintln(w, "ok") })
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
