package app

import (
	"fmt"
	"path/filepath"

	"palimpsest/internal/background"
	"palimpsest/internal/config"
	"palimpsest/pkg/client"
)

// StartedClient is Client for a Palimpsest that need not run: if the configuration
// is that of one process, no server is named and none answers, it starts one in the
// background, which goes on when this process ends. Calls wait until it answers.
// failed is called if it cannot be started; calls then fail as usual.
func (inv *Invocation) StartedClient(failed func(error)) (*client.Client, error) {
	cfg, settings, err := inv.Configuration(nil)
	if err != nil {
		return nil, err
	}
	if inv.flags.Server != "" || cfg.NATS.URL != natsEmbedded {
		return inv.Client()
	}
	started := make(chan struct{})
	go func() {
		defer close(started)
		if err := inv.start(cfg, settings); err != nil && inv.ctx.Err() == nil {
			failed(fmt.Errorf("start Palimpsest: %w", err))
		}
	}()
	return inv.clientThrough(inv.asked(), background.Await(started, answering()))
}

// start returns once the configured process answers, which it starts if need be.
func (inv *Invocation) start(cfg *Config, settings *config.Settings) error {
	dir, err := lasting(cfg.Data, settings)
	if err != nil {
		return err
	}
	args := []string{"up", "--data", dir}
	if inv.flags.ConfigFile != "" {
		args = append(args, "--config", inv.flags.ConfigFile)
	}
	return background.Start(inv.ctx, background.Program{Dir: dir, Args: args, Environ: inv.term.Environ, Answers: inv.answers})
}

// lasting is the data directory for a process that outlives the directory of its
// caller: the configured one, or that of the user's account.
func lasting(configured string, settings *config.Settings) (string, error) {
	for _, s := range settings.All() {
		if s.Key == "data" && s.Origin != config.Default {
			return filepath.Abs(configured)
		}
	}
	return background.DataHome()
}

// answers reports whether a server answers at the configured address.
func (inv *Invocation) answers() bool {
	server, err := inv.server()
	if err != nil {
		return false
	}
	return background.Answers(inv.ctx, server+"/healthz")
}
