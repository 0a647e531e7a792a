package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/dustin/go-humanize/english"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

// write sends a change and prints its result.
func write(inv *app.Invocation, change func(context.Context, *client.Client) (api.Written, error)) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	out, err := change(inv.Context(), cl)
	if err != nil {
		return err
	}
	return printWritten(inv, out)
}

// printWritten prints the result of a change.
func printWritten(inv *app.Invocation, out api.Written) error {
	return inv.Print(out, func(w io.Writer) {
		switch {
		case out.Closed != nil:
			_, _ = fmt.Fprintf(w, "closed %s\n", english.Plural(*out.Closed, "fact", ""))
			return
		case len(out.Results) == 0:
			_, _ = fmt.Fprintln(w, out.Status)
		}
		for _, r := range out.Results {
			text := cmp.Or(r.Memory, r.OldMemory)
			_, _ = fmt.Fprintf(w, "%s %s (%s)  %s\n", r.Event, shortID(r.ID), r.Reason, terminal.OneLine(text))
		}
	})
}
