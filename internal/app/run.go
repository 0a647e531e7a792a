package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"

	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/embed"
	"palimpsest/internal/greeting"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
	"palimpsest/internal/version"
	"palimpsest/pkg/client"
)

// Up runs all services in one process, and returns once the invocation has ended
// and they have drained. settings override the configuration, by their keys.
func (inv *Invocation) Up(settings map[string]string) error { return inv.serve(whole(), settings) }

// Service runs one service, by its name, as a process of its own, on engines that
// several processes can share.
func (inv *Invocation) Service(name string, settings map[string]string) error {
	return inv.serve(alone(name), settings)
}

// serve runs a process of a target until it is asked to end, and has it greet once
// it is ready.
func (inv *Invocation) serve(sh target, flags map[string]string) error {
	cfg, settings, err := inv.configurationOf(sh, flags)
	if err != nil {
		return err
	}
	log := cfg.Log.New(inv.Terminal().Err)
	if len(sh.services) == 1 {
		log = log.With("process", sh.name)
	}
	log.Debug("configuration", "settings", settings.String())
	sh.warn(*cfg, log)
	sh.announce(inv.Terminal().Out, *cfg)
	for greets := true; ; greets = false {
		h, err := assemble(inv.Context(), sh, *cfg, log)
		if err != nil {
			return err
		}
		cfg.HTTP.Listen, cfg.NATS.Listen = h.listens()
		err = inv.runOnce(h, greets)
		if !errors.Is(err, errErase) || inv.Context().Err() != nil {
			return plain(*cfg, err)
		}
		log.Warn("restarting to erase users", "error", err)
	}
}

// runOnce runs a process until it is asked to end, or to erase. greets has it print how
// to call it.
func (inv *Invocation) runOnce(h *process, greets bool) error {
	ctx, stop := context.WithCancel(inv.Context())
	var told sync.WaitGroup
	defer told.Wait()
	defer stop()
	return h.run(inv.Context(), func() {
		if greets {
			told.Go(func() { h.greeting().Greet(ctx, inv.Terminal().Out) })
		}
	})
}

// listens returns the addresses that the process has, where the configuration left
// a port open: those who call it must find it again.
func (h *process) listens() (http, nats string) {
	http, nats = h.cfg.HTTP.Listen, h.cfg.NATS.Listen
	if strings.HasSuffix(http, ":0") {
		http = strings.TrimPrefix(h.http.URL(), "http://")
	}
	if strings.HasSuffix(nats, ":0") && h.cfg.NATS.Own() {
		nats = strings.TrimPrefix(h.streams.ClientURL(), "nats://")
	}
	return http, nats
}

// announce prints the engines that a process is about to use, and what chose each.
func (s target) announce(w io.Writer, c Config) {
	title := version.String()
	if len(s.services) == 1 {
		title += " " + s.name
	}
	engine := func(label, key, file string) greeting.Engine {
		place := config.MaskURL(c.engine(key))
		if place == broker.OwnServer || place == backendFile {
			place = c.dataPath(file)
		}
		return greeting.Engine{Label: label, Place: place, Origin: c.origin(key)}
	}
	engines := []greeting.Engine{engine("broker", "nats.url", natsDir), engine("memory", "memory", memoryFile)}
	if s.auditLog() {
		engines = append(engines, engine("audit log", "audit", auditFile))
	}
	greeting.Announce(w, title, engines)
}

// greeting is how to call the process.
func (h *process) greeting() greeting.Process {
	out := greeting.Process{
		Version: version.String(), HTTP: h.http.URL(), NATS: h.streams.ClientURL(), Data: h.cfg.kept(), Gate: h.gate, Ready: h.readiness.Ready,
	}
	if len(h.target.services) == 1 {
		out.Service = h.target.name
	}
	return out
}

// kept says where whatever is remembered is kept.
func (c Config) kept() string {
	places := []string{c.Data}
	for _, url := range []string{c.Memory, c.Audit} {
		if url != backendFile {
			places = append(places, config.MaskURL(url))
		}
	}
	return strings.Join(places, ", ")
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
	maps.Copy(settings, map[string]string{"data": dir, "nats.url": broker.OwnServer, "memory": backendFile, "audit": backendFile})
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
	c, err := client.New(h.http.URL())
	if err == nil {
		shown := terminal.NewProgress(inv.Terminal().Err)
		err = use(ctx, Temporary{Client: c, Store: h.store, Embedder: h.embedder, Search: h.cfg.Query.Search, Part: shown.Part})
		if err == nil { // a bar that has not ended would be waited for
			shown.Wait()
		}
	}
	stop()
	return errors.Join(err, <-ended)
}
