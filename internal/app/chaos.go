package app

import (
	"context"
	"errors"
	"time"

	"palimpsest/internal/audit/journal"
	"palimpsest/internal/chaos"
	"palimpsest/internal/config"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/engine"
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

// VacantEngines refuses engines of several processes that hold data or have clients:
// chaos must not change the data of a user.
func VacantEngines(ctx context.Context, cfg Config) (err error) {
	var opened closers
	defer func() { err = plain(cfg, errors.Join(err, opened.close(context.WithoutCancel(ctx)))) }()
	streams, err := openStreams(ctx, cfg, "chaos", silent)
	if err != nil {
		return err
	}
	opened.later("broker", streams.Shutdown)
	kept, _, err := openAudit(ctx, cfg, silent)
	if err != nil {
		return err
	}
	opened.later("audit log", func(context.Context) error { return kept.Close() })
	memory, _, err := openMemory(ctx, cfg, local.New().Info(), time.Now, silent)
	if err != nil {
		return err
	}
	opened.later("memory store", func(context.Context) error { return memory.Close() })
	err = chaos.Engines{JS: streams.JetStream(), Streams: topology.Declare(cfg.topology()), Memory: memory, Log: kept}.Vacant(ctx)
	if taken := (*chaos.TakenError)(nil); errors.As(err, &taken) {
		reason := config.MaskURL(cfg.engine(taken.Setting)) + " " + taken.Reason
		if taken.Setting == "memory" {
			reason += " in namespace " + cfg.Redis.Namespace
		}
		return engine.Faultf(err, "%v", &chaos.TakenError{Setting: taken.Setting + ":", Reason: reason})
	}
	return err
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
