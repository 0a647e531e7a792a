package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"palimpsest/internal/app"
	"palimpsest/internal/eval"
)

type evalCommand struct {
	Retrieval  evalRetrievalCommand  `cmd:"" help:"Index a labelled set in a Palimpsest of its own, ask its questions and print recall and MRR."`
	Extraction evalExtractionCommand `cmd:"" help:"Extract facts from labelled utterances and print precision and recall per category."`
	Fit        evalFitCommand        `cmd:"" help:"Fit the weights of search to labelled sets, and print the ranking of each conversation with weights fitted to the others."`
}

type evalRetrievalCommand struct {
	Data     string   `required:"" help:"Directory with turns.jsonl, questions.jsonl and gold.jsonl." placeholder:"DIR" type:"existingdir"`
	Embedder []string `help:"Measure with each of these values of embedder.model; recall of the first is the baseline of the others." placeholder:"MODEL"`
	Baseline string   `help:"Compare with the figures of an earlier run." placeholder:"FILE" type:"existingfile"`
	Out      string   `help:"Write the figures to a file, as JSON." placeholder:"FILE" type:"path"`
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
	if len(c.Embedder) == 0 {
		c.Embedder = []string{""}
	}
	report, runs := eval.Report{}, []eval.Run(nil)
	for i, embedder := range c.Embedder {
		err := inv.Temporary(embedder, func(ctx context.Context, t app.Temporary) (err error) {
			report, err = eval.Retrieval(ctx, set, system(t))
			return err
		})
		if err != nil {
			return err
		}
		for _, run := range report.Runs {
			run.Embedder = embedder
			runs = append(runs, run)
		}
		if i == 0 && baseline == nil && len(c.Embedder) > 1 {
			baseline = &eval.Report{Runs: slices.Clone(report.Runs)}
		}
	}
	report.Runs = runs
	if c.Out != "" {
		if err := writeJSON(c.Out, report); err != nil {
			return err
		}
	}
	var failed error
	err = inv.Print(report, func(w io.Writer) { failed = report.Write(w, baseline) })
	return errors.Join(err, failed)
}

func system(t app.Temporary) eval.System {
	return eval.System{Client: t.Client, Store: t.Store, Embedder: t.Embedder, Search: t.Search, Part: t.Part}
}

type evalFitCommand struct {
	Data     []string `required:"" help:"Directories with turns.jsonl, questions.jsonl and gold.jsonl." placeholder:"DIR" sep:"none" type:"existingdir"`
	Embedder []string `help:"Fit one set of weights to all of these values of embedder.model." placeholder:"MODEL"`
	Features string   `help:"Write the features to a file instead, one question a line, as JSON." placeholder:"FILE" type:"path"`
}

// Run implements the command.
func (c *evalFitCommand) Run(inv *app.Invocation) error {
	if len(c.Embedder) == 0 {
		c.Embedder = []string{""}
	}
	var all []eval.Example
	for _, dir := range c.Data {
		set, err := eval.Load(dir)
		if err != nil {
			return err
		}
		for _, embedder := range c.Embedder {
			err := inv.Temporary(embedder, func(ctx context.Context, t app.Temporary) error {
				examples, err := eval.Examples(ctx, set, system(t))
				for i := range examples {
					examples[i].Set = strings.TrimSpace(examples[i].Set + " " + embedder)
				}
				all = append(all, examples...)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	if c.Features != "" {
		return eval.WriteExamples(c.Features, all)
	}
	fitted := eval.Fit(all)
	var failed error
	err := inv.Print(fitted, func(w io.Writer) { failed = fitted.Write(w) })
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
