package cli

import (
	"errors"
	"io"

	"palimpsest/internal/app"
	"palimpsest/internal/eval"
)

type evalExtractionCommand struct {
	Data string `required:"" help:"File of JSON lines, or a directory with such files (*.jsonl)." placeholder:"FILE|DIR" type:"path"`
	Out  string `help:"Write the correct, missing and wrong facts of each utterance, as JSON lines." placeholder:"FILE" type:"path"`
}

// Run implements the command.
func (c *evalExtractionCommand) Run(inv *app.Invocation) error {
	set, err := eval.LoadUtterances(c.Data)
	if err != nil {
		return err
	}
	x, err := app.RulePacks()
	if err != nil {
		return err
	}
	report, err := eval.Extraction(inv.Context(), set, x)
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := report.WriteOutcomes(c.Out); err != nil {
			return err
		}
	}
	var failed error
	err = inv.Print(report, func(w io.Writer) { failed = report.Write(w) })
	return errors.Join(err, failed)
}
