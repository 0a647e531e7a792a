package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/bench"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/services/ingest"
)

type benchCommand struct {
	Only             []string `help:"Measures to run; all unless given." placeholder:"NAME,…"`
	Rounds           int      `help:"How often each side takes its turn; 5 unless given." placeholder:"N"`
	Facts            []int    `help:"Sizes of the scope that is searched; 1000,100000 unless given." placeholder:"N,…"`
	Quick            bool     `help:"Only show that it runs, within seconds."`
	Out              string   `help:"Write the figures to a file, as JSON." placeholder:"FILE" type:"path"`
	Compare          string   `help:"Compare with the figures of an earlier run." placeholder:"FILE" type:"path"`
	Profile          string   `help:"Write CPU and heap profiles of what is measured to a directory." placeholder:"DIR" type:"existingdir"`
	Program          string   `help:"Measure another build than this one." placeholder:"FILE" type:"existingfile"`
	FailOnRegression bool     `help:"With --compare: exit 1 if a figure got worse beyond the noise of the rounds."`
}

// Run implements the command. It measures the shipped settings: those of the
// user would make two runs two different things.
func (c *benchCommand) Run(inv *invocation) error {
	var before bench.Report
	if c.Compare != "" {
		var err error
		if before, err = bench.Load(c.Compare); err != nil {
			return err
		}
	}
	cfg := bench.Config{
		Only: c.Only, Rounds: c.Rounds, Facts: c.Facts, Quick: c.Quick, Profiles: c.Profile,
		Progress: func(measure string) { _, _ = fmt.Fprintln(inv.term.Err, "measuring "+measure) },
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	parts, err := benchParts(inv.term.Environ)
	if err != nil {
		return err
	}
	if c.Program != "" {
		parts.Program = c.Program
	}
	report, failed := bench.Run(inv.ctx, cfg, parts)
	if inv.ctx.Err() != nil {
		return failed
	}
	if c.Out != "" {
		if err := writeReport(c.Out, report); err != nil {
			return errors.Join(failed, err)
		}
	}
	if c.Compare == "" {
		return errors.Join(failed, inv.show(report, report.Write))
	}
	return errors.Join(failed, c.compare(inv, before, report))
}

func (c *benchCommand) compare(inv *invocation, before, report bench.Report) error {
	compared := bench.Compare(before, report)
	err := inv.show(struct {
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

// show is print for a function that can fail.
func (inv *invocation) show(v any, human func(io.Writer) error) error {
	var failed error
	err := inv.print(v, func(w io.Writer) { failed = human(w) })
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

// benchParts hands over what is measured, as the embedded shape wires it.
func benchParts(environ []string) (bench.Parts, error) {
	program, err := os.Executable()
	if err != nil {
		return bench.Parts{}, fmt.Errorf("find this program: %w", err)
	}
	return bench.Parts{
		Version: version(), Program: program, Environ: withoutSettings(environ), Embedder: local.New(),
		Login: func(dir string) (nats.Option, error) {
			return nats.NkeyOptionFromSeed(filepath.Join(dir, natsDir, broker.SeedFile))
		},
		OpenStore: func(ctx context.Context, dir string) (store.Store, error) {
			return sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "memory.db"), Embedder: local.New().Info()})
		},
		Ingest: func(into store.Store) (func(context.Context, events.Raw) error, error) {
			service, err := ingest.New(ingest.Config{}, ingest.Deps{
				Episodes: into, Cursors: into, Shares: into, Vectors: into, Embedders: embed.Only(local.New()),
			})
			if err != nil {
				return nil, err
			}
			stage := service.Stages()[0]
			return func(ctx context.Context, raw events.Raw) error {
				_, err := stage.Handle(ctx, raw)
				return err
			}, nil
		},
	}, nil
}

// withoutSettings leaves out what would change the configuration.
func withoutSettings(environ []string) []string {
	var kept []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if _, fallback := fallbacks[name]; !fallback && !strings.HasPrefix(e, "PALIMPSEST_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// benchPeerCommand is what bench compares and compares with: the product, a part
// of it, or the bare engine, as a process of its own.
type benchPeerCommand struct {
	Name string `arg:"" enum:"nats,broker,ingest,whole" help:"What to run."`
	Data string `required:"" help:"Directory of whatever is kept." placeholder:"DIR"`

	Profile string `help:"Write a CPU profile of the whole run to a file, and a heap profile of its end beside it." placeholder:"FILE"`
}

// Run implements the command: it returns once ctx or the standard input has
// ended. Bench holds the other end of the input, so that a peer outlives it in no
// case.
func (c *benchPeerCommand) Run(inv *invocation) error {
	ctx, cancel := context.WithCancel(inv.ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, inv.term.In)
		if c.Profile != "" {
			if err := writeHeapProfile(c.Profile + ".heap"); err != nil {
				_, _ = fmt.Fprintln(inv.term.Err, err)
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

// writeHeapProfile writes what is in use, before the services end.
func writeHeapProfile(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write heap profile: %w", err)
	}
	return errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close())
}

func (c *benchPeerCommand) serve(ctx context.Context, inv *invocation) error {
	if c.Name == bench.PeerBare {
		return bench.ServeBare(ctx, c.Data, inv.term.Out)
	}
	cfg, _, err := inv.configuration(map[string]string{
		"data": c.Data, "http.listen": "127.0.0.1:0", "nats.listen": "127.0.0.1:0",
	})
	if err != nil {
		return err
	}
	h, err := assemble(ctx, whole(), *cfg, newLogger(cfg.Log, inv.term.Err))
	if err != nil {
		return err
	}
	switch c.Name {
	case bench.PeerBroker:
		h.services = nil
	case bench.PeerIngest:
		h.services = h.services[:1] // it is the first of the pipeline
	}
	return h.run(ctx, func() { greet(inv.term.Out, h) })
}
