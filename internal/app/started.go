package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"palimpsest/internal/embed"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/client"
)

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
	h, err := assemble(inv.Context(), whole(), *cfg, cfg.Log.New(inv.Terminal().Err))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(inv.Context())
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
	shown := terminal.NewProgress(inv.Terminal().Err)
	err = use(ctx, Temporary{Client: c, Store: h.store, Embedder: h.embedder, Search: h.cfg.Query.Search, Part: shown.Part})
	if err == nil { // a bar that has not ended would be waited for
		shown.Wait()
	}
	return err
}
