package app

import (
	"context"
	"errors"
	"fmt"
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
	defer func() { err = errors.Join(err, engines.close(ctx)) }()
	for _, look := range []func(context.Context) error{engines.vacantStreams, engines.vacantMemory, engines.vacantAudit} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// taken says which setting names an engine that is not vacant, and why.
func taken(setting, url, what string) error {
	return &userError{
		fmt.Sprintf("%s: %s %s: chaos needs an engine of its own, which holds nothing", setting, config.MaskURL(url), what), errTaken,
	}
}

// errTaken means that an engine holds data or has clients.
var errTaken = errors.New("the engine is in use")

func (e *engines) vacantStreams(ctx context.Context) error {
	for _, s := range topology.Declare(e.cfg.topology()).Streams {
		stream, err := e.streams.JetStream().Stream(ctx, s.Config.Name)
		if err != nil {
			return fmt.Errorf("look at stream %s: %w", s.Config.Name, err)
		}
		if stream.CachedInfo().State.LastSeq > 0 {
			return taken("nats.url", e.cfg.NATS.URL, "has or had messages in stream "+s.Config.Name)
		}
		for _, c := range s.Consumers {
			consumer, err := stream.Consumer(ctx, c.Durable)
			if err != nil {
				return fmt.Errorf("look at consumer %s: %w", c.Durable, err)
			}
			if consumer.CachedInfo().NumWaiting > 0 {
				return taken("nats.url", e.cfg.NATS.URL, "has a process that reads "+c.Durable)
			}
		}
	}
	return nil
}

func (e *engines) vacantMemory(ctx context.Context) error {
	projects, err := e.memory.Projects(ctx)
	if err != nil {
		return err
	}
	if len(projects) > 0 {
		return taken("memory", e.cfg.Memory, fmt.Sprintf("holds memories of project %s in namespace %s", projects[0], e.cfg.Redis.Namespace))
	}
	return nil
}

func (e *engines) vacantAudit(ctx context.Context) error {
	last, err := e.auditLog.LastSequence(ctx)
	if err != nil {
		return err
	}
	if last > 0 {
		return taken("audit", e.cfg.Audit, "holds an audit log")
	}
	return nil
}
