package cli

import (
	"fmt"
	"io"

	"palimpsest/internal/app"
)

type reindexCommand struct {
	Data string `help:"Data directory, if the memory store is a file; ./palimpsest-data unless configured." placeholder:"DIR"`
}

// Run implements the command.
func (c *reindexCommand) Run(inv *app.Invocation) error {
	out, err := inv.Reindex(c.Data)
	if err != nil {
		return err
	}
	return inv.Print(out, func(w io.Writer) {
		if out.From == out.To {
			_, _ = fmt.Fprintf(w, "vectors are of %s\n", out.To)
			return
		}
		_, _ = fmt.Fprintf(w, "vectors are now of %s, previously of %s\n", out.To, out.From)
	})
}
