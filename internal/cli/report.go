package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type reportCommand struct {
	Whose
	Name   string      `arg:"" optional:"" help:"Name of the report; all reports are listed unless given."`
	From   api.Instant `help:"Only deltas that were applied at this time or later: RFC 3339 or YYYY-MM-DD." placeholder:"INSTANT"`
	To     api.Instant `help:"Only deltas that were applied before this time." placeholder:"INSTANT"`
	Limit  int         `help:"Rows at most (1 to 10000)." default:"1000"`
	Format string      `help:"table, json or csv; --json is the same as json." enum:"table,json,csv" default:"table"`
}

// Validate implements kong's hook.
func (c *reportCommand) Validate() error {
	if c.Limit < 1 || c.Limit > 10_000 {
		return errors.New("--limit: is outside 1 to 10000")
	}
	return nil
}

// Run implements the command.
func (c *reportCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	if c.Format == "json" {
		flags := inv.Flags()
		flags.JSON = true
		inv = app.NewInvocation(inv.Context(), inv.Terminal(), flags)
	}
	if c.Name == "" {
		names, err := cl.Reports(inv.Context())
		if err != nil {
			return err
		}
		return inv.Print(names, func(w io.Writer) {
			t := terminal.NewTable(w, "REPORT", "ABOUT")
			for _, n := range names.Reports {
				t.Row(n.Name, n.About)
			}
			t.Flush()
		})
	}
	sel, err := c.Selector(inv.Project())
	if err != nil {
		return err
	}
	r, err := cl.Report(inv.Context(), c.Name, sel, client.ReportRange{From: c.From.Time, To: c.To.Time, Limit: c.Limit})
	if err != nil {
		return err
	}
	if c.Format == "csv" && !inv.Flags().JSON {
		return reportCSV(inv.Terminal().Out, r)
	}
	return inv.Print(r, func(w io.Writer) {
		columns := make([]string, len(r.Columns))
		for i, name := range r.Columns {
			columns[i] = strings.ToUpper(name)
		}
		t := terminal.NewTable(w, columns...)
		for _, line := range r.Rows {
			cells := make([]any, len(r.Columns))
			for i, name := range r.Columns {
				cells[i] = either(cell(line[name], 3), "-")
			}
			t.Row(cells...)
		}
		t.Flush()
	})
}

func reportCSV(out io.Writer, r api.Report) error {
	w := csv.NewWriter(out)
	if err := w.Write(r.Columns); err != nil {
		return err
	}
	for _, line := range r.Rows {
		cells := make([]string, len(r.Columns))
		for i, name := range r.Columns {
			cells[i] = cell(line[name], -1)
		}
		if err := w.Write(cells); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// cell is a value as text, a fraction with that many digits or, for -1, as many
// as it takes; nothing for null.
func cell(v any, digits int) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		if v == float64(int64(v)) {
			digits = 0
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
	return fmt.Sprint(v)
}
