package cli

import (
	"fmt"
	"io"

	"palimpsest/internal/app"
	"palimpsest/internal/version"
)

type versionCommand struct{}

// Run implements the command.
func (c *versionCommand) Run(inv *app.Invocation) error {
	v := map[string]string{"version": version.String()}
	return inv.Print(v, func(w io.Writer) { _, _ = fmt.Fprintln(w, v["version"]) })
}
