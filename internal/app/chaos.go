package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/chaos"
	"palimpsest/internal/config"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/store"
	"palimpsest/internal/topology"
)

// OwnEngines configures a single process that keeps its engines in the directory
// of a chaos run.
func OwnEngines(dir string) Config {
	cfg := defaults()
	cfg.Data, cfg.Memory, cfg.Audit, cfg.NATS.URL = chaos.Data(dir), backendFile, backendFile, natsEmbedded
	return cfg
}

// Services is the number of services.
func Services() int { return len(services) }

// Deployment is the configuration of several processes, and the plan to run so
// many of each service with it.
func (inv *Invocation) Deployment(replicas int) (Config, chaos.Plan, error) {
	shared := alone("consolidator") // which needs every engine
	shared.name = "chaos --replicas"
	cfg, _, err := inv.configurationOf(shared, nil)
	if err != nil {
		return Config{}, chaos.Plan{}, err
	}
	plan := chaos.Plan{
		Broker: cfg.connection("chaos"),
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

// VacantEngines refuses engines that hold data or have clients: chaos must not
// change the data of a user.
func VacantEngines(ctx context.Context, cfg Config) (err error) {
	defer func() { err = plain(cfg, err) }()
	engines, err := openEngines(ctx, cfg, func(ctx context.Context, cfg Config, log *slog.Logger) (store.Store, error) {
		made, _, err := openMemory(ctx, cfg, local.New().Info(), time.Now, log) // as a service would
		return made, err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engines.close(context.WithoutCancel(ctx))) }()
	err = chaos.Engines{
		JS: engines.streams.JetStream(), Streams: topology.Declare(cfg.topology()), Memory: engines.memory, Log: engines.auditLog,
	}.Vacant(ctx)
	if taken := (*chaos.TakenError)(nil); errors.As(err, &taken) {
		reason := config.MaskURL(cfg.engine(taken.Setting)) + " " + taken.Reason
		if taken.Setting == "memory" {
			reason += " in namespace " + cfg.Redis.Namespace
		}
		return &userError{(&chaos.TakenError{Setting: taken.Setting + ":", Reason: reason}).Error(), err}
	}
	return err
}

// engines are what processes keep their work in, open to be looked at.
type engines struct {
	cfg      Config
	streams  streams
	auditLog audit.Log
	memory   store.Store
	closers
}

// openEngines opens the configured engines, the memory store with open. An embedded
// broker accepts no clients.
func openEngines(ctx context.Context, cfg Config, open func(context.Context, Config, *slog.Logger) (store.Store, error)) (e *engines, err error) {
	e = &engines{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close(context.WithoutCancel(ctx)))
		}
	}()
	silent := slog.New(slog.DiscardHandler)
	if cfg.NATS.URL == natsEmbedded {
		e.streams, err = openOwn(cfg, silent)
	} else {
		e.streams, err = openStreams(ctx, cfg, "chaos", silent)
	}
	if err != nil {
		return e, err
	}
	e.later("broker", e.streams.Shutdown)
	if e.auditLog, _, err = openAudit(ctx, cfg, silent); err != nil {
		return e, err
	}
	e.later("audit log", func(context.Context) error { return e.auditLog.Close() })
	if e.memory, err = open(ctx, cfg, silent); err != nil {
		return e, err
	}
	e.later("memory store", func(context.Context) error { return e.memory.Close() })
	return e, nil
}

// JudgeEngines judges the data that a run left in the engines of cfg.
func JudgeEngines(ctx context.Context, cfg Config, record chaos.Record, workload *chaos.Workload) (verdict chaos.Verdict, err error) {
	left, err := openEngines(ctx, cfg, liveOf)
	if err != nil {
		return verdict, plain(cfg, err)
	}
	verdict, err = left.judge(ctx, record, workload)
	return verdict, plain(cfg, errors.Join(err, left.close(context.WithoutCancel(ctx))))
}

// judge holds the engines against the record.
func (e *engines) judge(ctx context.Context, record chaos.Record, workload *chaos.Workload) (chaos.Verdict, error) {
	deadLetters, err := chaos.DeadLetters(ctx, e.streams.JetStream())
	if err != nil {
		return chaos.Verdict{}, err
	}
	return chaos.Judge(ctx, record, workload, chaos.Evidence{
		Episodes: episodesOf(e.streams.JetStream()), Journal: journal.New(e.streams.JetStream()), Log: e.auditLog, Store: e.memory,
		Letters: deadLetters,
	})
}

// CompareEngines compares the facts of several processes with those of a single
// process that received the same messages, and adds the result to the verdict.
func CompareEngines(ctx context.Context, several, single Config, verdict *chaos.Verdict, workload *chaos.Workload) (err error) {
	many, err := liveOf(ctx, several, slog.New(slog.DiscardHandler))
	if err != nil {
		return plain(several, err)
	}
	defer func() { err = errors.Join(err, many.Close()) }()
	one, err := liveOf(ctx, single, slog.New(slog.DiscardHandler))
	if err != nil {
		return plain(single, err)
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	return verdict.CompareShapes(ctx, workload, many, one)
}
