package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/audit/journal"
	"palimpsest/internal/bench"
	"palimpsest/internal/broker"
	"palimpsest/internal/chaos"
	"palimpsest/internal/config"
	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/services/ingest"
)

// OwnEngines configures a single process that keeps its engines in the directory
// of a chaos run.
func OwnEngines(dir string) Config {
	cfg := defaults()
	cfg.Data, cfg.Memory, cfg.Audit, cfg.NATS.URL = chaos.Data(dir), backendFile, backendFile, broker.OwnServer
	return cfg
}

// Services is the number of services.
func Services() int { return len(services) }

// sharing is a process on engines that several processes share, all of which it needs.
func sharing() target {
	shared := alone("consolidator")
	shared.name = "chaos --replicas"
	return shared
}

// Deployment is the configuration of several processes, and the plan to run so
// many of each service with it.
func (inv *Invocation) Deployment(replicas int) (Config, chaos.Plan, error) {
	cfg, _, err := inv.configurationOf(sharing(), nil)
	if err != nil {
		return Config{}, chaos.Plan{}, err
	}
	plan := chaos.Plan{
		Broker: cfg.NATS.Named("chaos"),
		// The engines are named for rebuild too, which has others by default.
		Environ: []string{"PALIMPSEST_MEMORY=" + cfg.Memory, "PALIMPSEST_AUDIT=" + cfg.Audit, "PALIMPSEST_NATS_URL=" + cfg.NATS.URL},
	}
	if inv.Flags().ConfigFile != "" {
		plan.Flags = []string{"--config", inv.Flags().ConfigFile}
	}
	for range replicas {
		for _, p := range services {
			plan.Processes = append(plan.Processes, chaos.Process{
				Name: p.name, Args: []string{p.name, "--http", "127.0.0.1:0"}, Answers: p.answers,
			})
		}
	}
	return *cfg, plan, nil
}

// VacantEngines refuses engines of several processes that hold data or have clients:
// chaos must not change the data of a user.
func VacantEngines(ctx context.Context, cfg Config) (err error) {
	h := &process{target: sharing(), cfg: cfg, log: silent, now: time.Now, embedder: local.New()}
	h.target.name = "chaos" // of the connection
	defer func() { err = plain(cfg, errors.Join(err, h.shut())) }()
	if err := h.connect(ctx); err != nil {
		return err
	}
	if err := h.openStores(ctx); err != nil {
		return err
	}
	return chaos.Engines{
		JS: h.streams.JetStream(), Streams: cfg.NATS.Topology(), Memory: h.store, Log: h.auditLog,
		Named: func(setting string) string {
			name := config.MaskURL(cfg.engine(setting))
			if setting == "memory" {
				name += " in namespace " + cfg.Redis.Namespace
			}
			return name
		},
	}.Vacant(ctx)
}

// JudgeEngines judges the data that a run left in the engines of cfg.
func JudgeEngines(ctx context.Context, cfg Config, record chaos.Record, workload *chaos.Workload) (verdict chaos.Verdict, err error) {
	left, err := openEngines(ctx, &cfg, (*engines).openStore, (*engines).openLog)
	if err != nil {
		return verdict, err
	}
	defer func() { err = plain(cfg, errors.Join(err, left.close(context.WithoutCancel(ctx)))) }()
	deadLetters, err := chaos.DeadLetters(ctx, left.js)
	if err != nil {
		return verdict, err
	}
	return chaos.Judge(ctx, record, workload, chaos.Evidence{
		Episodes: episodesOf(left.js), Journal: journal.New(left.js), Log: left.log, Store: left.store, Letters: deadLetters,
	})
}

// CompareEngines compares the facts of several processes with those of a single
// process that received the same messages, and adds the result to the verdict.
func CompareEngines(ctx context.Context, several, single Config, verdict *chaos.Verdict, workload *chaos.Workload) (err error) {
	many, err := liveOf(ctx, several, silent)
	if err != nil {
		return plain(several, err)
	}
	defer func() { err = errors.Join(err, many.Close()) }()
	one, err := liveOf(ctx, single, silent)
	if err != nil {
		return plain(single, err)
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	return verdict.CompareShapes(ctx, workload, many, one)
}

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
