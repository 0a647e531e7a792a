package cli

import (
	"fmt"

	"palimpsest/internal/app"
)

type exportCommand struct {
	Whose
	Content bool `help:"Leave out wall-clock fields, to compare two installations."`
}

// Run implements the command.
func (c *exportCommand) Run(inv *app.Invocation) error {
	sel, err := c.Selector(inv.Project())
	if err != nil {
		return err
	}
	cl, err := inv.Client()
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
