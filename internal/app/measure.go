package app

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/audit/journal"
	"palimpsest/internal/bench"
	"palimpsest/internal/broker"
	"palimpsest/internal/chaos"
	"palimpsest/internal/config"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/version"
)

// OwnEngines configures a single process that keeps its engines in the directory
// of a chaos run.
func OwnEngines(dir string) Config {
	cfg := defaults()
	cfg.Data, cfg.Memory, cfg.Audit, cfg.NATS.URL = chaos.Data(dir), backendFile, backendFile, broker.OwnServer
	return cfg
}

// Services are the processes of one service each, in the order in which data meets them.
func Services() (all []chaos.Process) {
	for _, p := range services {
		all = append(all, chaos.Process{Name: p.name, Args: []string{p.name, "--http", "127.0.0.1:0"}, Answers: p.answers})
	}
	return all
}

// sharing is a process on engines that several processes share, all of which it needs.
func sharing() target {
	shared := alone("consolidator")
	shared.name = "chaos --replicas"
	return shared
}

// SharedConfiguration returns that of several processes on shared engines.
func (inv *Invocation) SharedConfiguration() (*Config, error) {
	cfg, _, err := inv.configurationOf(sharing(), nil)
	return cfg, err
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
	defer func() { err = plain(cfg, errors.Join(err, left.Close(context.WithoutCancel(ctx)))) }()
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

// BenchParts returns what is measured, as one process wires it.
func BenchParts() bench.Parts {
	return bench.Parts{
		Version: version.String(), Embedder: local.New(),
		Login: func(dir string) (nats.Option, error) {
			return nats.NkeyOptionFromSeed(filepath.Join(dir, natsDir, broker.SeedFile))
		},
		OpenStore: func(ctx context.Context, dir string) (store.Store, error) {
			return sqlite.Open(ctx, sqlite.Config{Path: filepath.Join(dir, "memory.db"), Embedder: local.New().Info()})
		},
	}
}

// ServePeer runs a part of the product that bench measures, by its name, over the
// directory data, until ctx ends.
func (inv *Invocation) ServePeer(ctx context.Context, name, data string) error {
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
