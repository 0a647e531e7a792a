package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

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
	if inv.flags.ConfigFile != "" {
		plan.Flags = []string{"--config", inv.flags.ConfigFile}
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
