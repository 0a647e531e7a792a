package cli

import (
	"bufio"
	"errors"
	"fmt"

	"palimpsest/internal/app"
)

type exportCommand struct {
	Whose
	Content bool `help:"Leave out wall-clock fields, to compare two installations."`

	Everything bool   `help:"Export all episodes and audit records of all projects instead, for import --everything."`
	Data       string `help:"With --everything: the data directory, if streams and memory are files; ./palimpsest-data unless configured." placeholder:"DIR"`
}

// Run implements the command.
func (c *exportCommand) Run(inv *app.Invocation) error {
	if c.Everything {
		buffered := bufio.NewWriter(inv.Terminal().Out)
		out, err := inv.ExportAll(c.Data, buffered)
		if err = errors.Join(err, buffered.Flush()); err == nil {
			_, _ = fmt.Fprintf(inv.Terminal().Err, "%d episodes and %d audit records, digest %s\n", out.Episodes, out.Audit, out.Digest)
		}
		return err
	}
	cl, sel, err := c.asks(inv)
	if err != nil {
		return err
	}
	for line, err := range cl.Export(inv.Context(), sel, c.Content) {
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(inv.Terminal().Out, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}
