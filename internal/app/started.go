package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"palimpsest/internal/background"
	"palimpsest/internal/config"
	"palimpsest/internal/embed"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
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

// Temporary is a Palimpsest in one process, over a directory that is removed with
// it.
type Temporary struct {
	Client   *client.Client
	Store    store.Store
	Embedder embed.Embedder
	Search   retrieval.Config
	// Part shows the progress of a part of the work of about total units.
	Part func(name string, total uint64) (step func(n int), end func())
}

// Temporary runs a Palimpsest with the user's settings of all but data, addresses
// and engines, which are its own, and ends it when use returns. If embedder is given,
// it is the value of embedder.model.
func (inv *Invocation) Temporary(embedder string, use func(context.Context, Temporary) error) error {
	return own(map[string]string{
		"embedder.model": embedder, "http.listen": "127.0.0.1:0", "nats.listen": "127.0.0.1:0",
	}, func(settings map[string]string) error { return inv.temporary(settings, use) })
}

// UpEphemeral is Up over a directory that is removed at the end, with engines of its
// own.
func (inv *Invocation) UpEphemeral(settings map[string]string) error { return own(settings, inv.Up) }

// own calls do with settings of engines in this process, over a directory that is
// removed when do returns.
func own(settings map[string]string, do func(settings map[string]string) error) (err error) {
	dir, err := os.MkdirTemp("", "palimpsest-*")
	if err != nil {
		return fmt.Errorf("make a data directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings = maps.Clone(settings)
	maps.Copy(settings, map[string]string{"data": dir, "nats.url": natsEmbedded, "memory": backendFile, "audit": backendFile})
	return do(settings)
}

func (inv *Invocation) temporary(settings map[string]string, use func(context.Context, Temporary) error) error {
	cfg, _, err := inv.Configuration(settings)
	if err != nil {
		return err
	}
	if cfg.Log.Level == defaults().Log.Level {
		cfg.Log.Level = "warn" // its start and end are no news
	}
	h, err := assemble(inv.ctx, whole(), *cfg, newLogger(cfg.Log, inv.term.Err))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(inv.ctx)
	defer stop()
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- h.run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		return errors.Join(errors.New("ended before it was ready"), err)
	}
	err = h.lend(ctx, inv, use)
	stop()
	return errors.Join(err, <-ended)
}

func (h *process) lend(ctx context.Context, inv *Invocation, use func(context.Context, Temporary) error) error {
	c, err := client.New(h.http.URL())
	if err != nil {
		return err
	}
	shown := terminal.NewProgress(inv.term.Err)
	err = use(ctx, Temporary{Client: c, Store: h.store, Embedder: h.embedder, Search: h.cfg.Query.Search, Part: shown.Part})
	if err == nil { // a bar that has not ended would be waited for
		shown.Wait()
	}
	return err
}
