package cli

import (
	"fmt"
	"io"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
)

type configCommand struct {
	Print configPrintCommand `cmd:"" help:"Print the effective configuration and where each value comes from."`
	Check configCheckCommand `cmd:"" help:"Check the configuration."`
}

type configPrintCommand struct{}

// Run implements the command.
func (c *configPrintCommand) Run(inv *app.Invocation) error {
	_, settings, err := inv.Configuration(nil)
	if err != nil {
		return err
	}
	all := settings.All()
	return inv.Print(all, func(w io.Writer) {
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

type configCheckCommand struct {
	Offline bool `help:"Do not check whether the configured servers can be reached."`
}

// Run implements the command. It changes nothing anywhere.
func (c *configCheckCommand) Run(inv *app.Invocation) error {
	checked, err := inv.Check(c.Offline)
	if err != nil {
		return err
	}
	return inv.Print(checked, func(w io.Writer) {
		_, _ = fmt.Fprintln(w, "ok")
		if checked.Vectors != "" {
			_, _ = fmt.Fprintln(w, "vectors are of", checked.Vectors)
		}
		if checked.VectorsBuilding != "" {
			_, _ = fmt.Fprintf(w, "vectors of %s are being made, %d texts are pending\n", checked.VectorsBuilding, checked.VectorsPending)
		}
	})
}
