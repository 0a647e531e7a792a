package cli

import (
	"fmt"
	"io"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
)

type doctorCommand struct {
	Data string `help:"Data directory; ./palimpsest-data unless configured." placeholder:"DIR"`
}

// Run implements the command. A check that fails is an error.
func (c *doctorCommand) Run(inv *app.Invocation) error {
	found := inv.Examine(c.Data)
	bad := 0
	for _, f := range found {
		if !f.OK {
			bad++
		}
	}
	err := inv.Print(found, func(w io.Writer) {
		for _, f := range found {
			mark := terminal.Good(w, "ok  ")
			if !f.OK {
				mark = terminal.Bad(w, "FAIL")
			}
			_, _ = fmt.Fprintf(w, "%s  %-8s %s\n", mark, f.Check, terminal.OneLine(f.Text))
		}
	})
	if err == nil && bad > 0 {
		return fmt.Errorf("%d of %d checks failed", bad, len(found))
	}
	return err
}
