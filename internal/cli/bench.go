package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strings"

	"palimpsest/internal/app"
	"palimpsest/internal/bench"
	"palimpsest/internal/bench/bare"
)

type benchCommand struct {
	Only             []string `help:"Measures to run; all unless given." placeholder:"NAME,…"`
	Rounds           int      `help:"How many times each side is measured; 5 unless given." placeholder:"N"`
	Facts            []int    `help:"Sizes of the searched scope; 1000,100000 unless given." placeholder:"N,…"`
	Quick            bool     `help:"Run a short check of seconds; the figures mean nothing."`
	Out              string   `help:"Write the figures to a file, as JSON." placeholder:"FILE" type:"path"`
	Compare          string   `help:"Compare with the figures of an earlier run." placeholder:"FILE" type:"path"`
	Profile          string   `help:"Write CPU and heap profiles of the measured processes to a directory." placeholder:"DIR" type:"existingdir"`
	Program          string   `help:"Measure another build." placeholder:"FILE" type:"existingfile"`
	FailOnRegression bool     `help:"With --compare: exit 1 if a figure got worse beyond the noise of the rounds."`
}

// Run implements the command. It measures the shipped settings: those of the
// user would make two runs two different things.
func (c *benchCommand) Run(inv *app.Invocation) error {
	var before bench.Report
	if c.Compare != "" {
		var err error
		if before, err = bench.Load(c.Compare); err != nil {
			return err
		}
	}
	cfg := bench.Config{
		Only: c.Only, Rounds: c.Rounds, Facts: c.Facts, Quick: c.Quick, Profiles: c.Profile,
		Progress: func(measure string) { _, _ = fmt.Fprintln(inv.Terminal().Err, "measuring "+measure) },
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	parts := app.BenchParts()
	parts.Environ = slices.DeleteFunc(slices.Clone(inv.Terminal().Environ), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		return app.Reads(name)
	})
	if parts.Program = c.Program; parts.Program == "" {
		var err error
		if parts.Program, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program: %w", err)
		}
	}
	report, failed := bench.Run(inv.Context(), cfg, parts)
	if inv.Context().Err() != nil {
		return failed
	}
	if c.Out != "" {
		if err := writeReport(c.Out, report); err != nil {
			return errors.Join(failed, err)
		}
	}
	if c.Compare == "" {
		return errors.Join(failed, show(inv, report, report.Write))
	}
	return errors.Join(failed, c.compare(inv, before, report))
}

func (c *benchCommand) compare(inv *app.Invocation, before, report bench.Report) error {
	compared := bench.Compare(before, report)
	err := show(inv, struct {
		bench.Report
		Comparison bench.Comparison `json:"comparison"`
	}{report, compared}, func(w io.Writer) error {
		if err := report.Write(w); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(w, "\nagainst %s\n", c.Compare)
		return compared.Write(w)
	})
	if worse := compared.Regressed(); err == nil && c.FailOnRegression && worse > 0 {
		return fmt.Errorf("%d figures are worse than in %s", worse, c.Compare)
	}
	return err
}

// show is Print for a function that can fail.
func show(inv *app.Invocation, v any, human func(io.Writer) error) error {
	var failed error
	err := inv.Print(v, func(w io.Writer) { failed = human(w) })
	if err == nil {
		err = failed
	}
	return err
}

func writeReport(path string, report bench.Report) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}

// benchPeerCommand is what bench compares and compares with: the product, a part
// of it, or the bare engine, as a process of its own.
type benchPeerCommand struct {
	Name string `arg:"" enum:"nats,broker,ingest,whole" help:"What to run."`
	Data string `required:"" help:"Data directory." placeholder:"DIR"`

	Profile string `help:"Write a CPU profile of the whole run to a file, and a heap profile of its end beside it." placeholder:"FILE"`
}

// Run implements the command: it returns once ctx or the standard input has
// ended. Bench holds the other end of the input, so that a peer outlives it in no
// case.
func (c *benchPeerCommand) Run(inv *app.Invocation) error {
	ctx, cancel := context.WithCancel(inv.Context())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, inv.Terminal().In)
		if c.Profile != "" {
			if err := writeHeapProfile(c.Profile + ".heap"); err != nil {
				_, _ = fmt.Fprintln(inv.Terminal().Err, err)
			}
		}
		cancel()
	}()
	if c.Profile == "" {
		return c.serve(ctx, inv)
	}
	file, err := os.Create(c.Profile)
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(fmt.Errorf("write profile: %w", err), file.Close())
	}
	err = c.serve(ctx, inv)
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

func (c *benchPeerCommand) serve(ctx context.Context, inv *app.Invocation) error {
	if c.Name == bench.PeerBare {
		return bare.Serve(ctx, c.Data, inv.Terminal().Out)
	}
	return inv.ServePeer(ctx, c.Name, c.Data)
}

// writeHeapProfile writes what is in use, before the services end.
func writeHeapProfile(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write heap profile: %w", err)
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close())
}
