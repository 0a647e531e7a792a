package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// BenchParts hands over what is measured, as the embedded shape wires it.
func BenchParts(environ []string) (bench.Parts, error) {
	program, err := os.Executable()
	if err != nil {
		return bench.Parts{}, fmt.Errorf("find this program: %w", err)
	}
	return bench.Parts{
		Version: Version(), Program: program, Environ: slices.DeleteFunc(slices.Clone(environ), configures), Embedder: local.New(),
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

// configures reports whether a line of the environment changes the configuration.
func configures(line string) bool {
	name, _, _ := strings.Cut(line, "=")
	return Reads(name)
}

// ServePeer runs what bench compares, or compares with, by its name, over the
// directory data, until ctx ends.
func (inv *Invocation) ServePeer(ctx context.Context, name, data string) error {
	if name == bench.PeerBare {
		return bench.ServeBare(ctx, data, inv.Terminal().Out)
	}
	cfg, _, err := inv.Configuration(map[string]string{
		"data": data, "http.listen": "127.0.0.1:0", "nats.listen": "127.0.0.1:0",
	})
	if err != nil {
		return err
	}
	h, err := assemble(ctx, whole(), *cfg, cfg.Log.New(inv.Terminal().Err))
	if err != nil {
		return err
	}
	switch name {
	case bench.PeerBroker:
		h.services = nil
	case bench.PeerIngest:
		h.services = h.services[:1] // it is the first of the pipeline
	}
	return h.run(ctx, func() { h.greeting().Print(inv.Terminal().Out) })
}
