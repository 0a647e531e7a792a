package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"palimpsest/internal/app"
	"palimpsest/internal/eval"
)

type evalCommand struct {
	Retrieval evalRetrievalCommand `cmd:"" help:"Index a labelled set in a Palimpsest of its own, ask its questions and print recall and MRR."`
}

type evalRetrievalCommand struct {
	Data     string `required:"" help:"Directory with turns.jsonl, questions.jsonl and gold.jsonl." placeholder:"DIR" type:"existingdir"`
	Baseline string `help:"Compare with the figures of an earlier run." placeholder:"FILE" type:"existingfile"`
	Out      string `help:"Write the figures to a file, as JSON." placeholder:"FILE" type:"path"`
}

// Run implements the command.
func (c *evalRetrievalCommand) Run(inv *app.Invocation) error {
	set, err := eval.Load(c.Data)
	if err != nil {
		return err
	}
	var baseline *eval.Report
	if c.Baseline != "" {
		r, err := eval.LoadReport(c.Baseline)
		if err != nil {
			return err
		}
		baseline = &r
	}
	var report eval.Report
	err = inv.Temporary(func(ctx context.Context, t app.Temporary) (err error) {
		report, err = eval.Retrieval(ctx, set, eval.System{
			Client: t.Client, Store: t.Store, Embedder: t.Embedder, Search: t.Search, Part: t.Part,
		})
		return err
	})
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := writeJSON(c.Out, report); err != nil {
			return err
		}
	}
	var failed error
	err = inv.Print(report, func(w io.Writer) { failed = report.Write(w, baseline) })
	return errors.Join(err, failed)
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
