package cli

import (
	"fmt"
	"io"

	"palimpsest/internal/app"
	"palimpsest/pkg/api"
)

type digestCommand struct {
	Content bool   `help:"Leave out wall-clock fields, to compare two installations."`
	Data    string `help:"Data directory of a stopped Palimpsest, or of any one whose memory store is a server: read the store directly. A running Palimpsest is asked unless given." placeholder:"DIR"`
}

// Run implements the command.
func (c *digestCommand) Run(inv *app.Invocation) error {
	d, err := c.digest(inv)
	if err != nil {
		return err
	}
	return inv.Print(d, func(w io.Writer) { _, _ = fmt.Fprintln(w, d.Digest) })
}

func (c *digestCommand) digest(inv *app.Invocation) (out api.Digest, err error) {
	if c.Data == "" {
		cl, err := inv.Client()
		if err != nil {
			return out, err
		}
		return cl.Digest(inv.Context(), c.Content)
	}
	out.Content = c.Content
	out.Digest, err = inv.Digest(c.Data, c.Content)
	return out, err
}
