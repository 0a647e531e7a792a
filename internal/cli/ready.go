package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
)

type readyCommand struct{}

// Run implements the command. A process that is not ready is an error, so that a
// container's health check can be this.
func (c *readyCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	r, err := cl.Ready(inv.Context())
	if err != nil {
		return err
	}
	return inv.Print(r, func(w io.Writer) {
		t := terminal.NewTable(w, "CHECK", "OK", "TOOK")
		for _, name := range slices.Sorted(maps.Keys(r.Checks)) {
			check := r.Checks[name]
			t.Row(name, check.OK, fmt.Sprint(time.Duration(check.LatencyMS*float64(time.Millisecond)).Round(time.Microsecond)))
		}
		t.Flush()
	})
}
