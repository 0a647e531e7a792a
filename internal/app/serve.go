package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"palimpsest/internal/config"
	"palimpsest/internal/greeting"
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
		log.Warn("services are stopped, to erase", "end", err)
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
	if strings.HasSuffix(nats, ":0") && h.cfg.NATS.URL == natsEmbedded {
		nats = strings.TrimPrefix(h.streams.ClientURL(), "nats://")
	}
	return http, nats
}

// announce prints the engines that a process is about to use, and what chose each.
func (s target) announce(w io.Writer, c Config) {
	title := Version()
	if len(s.services) == 1 {
		title += " " + s.name
	}
	engine := func(label, key, file string) greeting.Engine {
		place := config.MaskURL(c.engine(key))
		if place == natsEmbedded || place == backendFile {
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
		Version: Version(), HTTP: h.http.URL(), NATS: h.streams.ClientURL(), Data: h.cfg.kept(), Gate: h.gate, Ready: h.readiness.Ready,
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

// closer undoes one step of opening.
type closer struct {
	name  string
	close func(context.Context) error
}

// closers undo what was opened.
type closers []closer

func (c *closers) later(name string, undo func(context.Context) error) {
	*c = append(*c, closer{name, undo})
}

// close undoes what was opened, last first.
func (c *closers) close(ctx context.Context) error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		if err := (*c)[i].close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", (*c)[i].name, err))
		}
	}
	*c = nil
	return errors.Join(errs...)
}
