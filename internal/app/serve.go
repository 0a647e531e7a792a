package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/internal/config"
	"palimpsest/pkg/api"
)

// Up runs all services in one process, and returns once the invocation has ended
// and they have drained. settings override the configuration, by their keys.
func (inv *Invocation) Up(settings map[string]string) error {
	return inv.serve(whole(), settings, greet)
}

// Service runs one service, by its name, as a process of its own, on engines that
// several processes can share.
func (inv *Invocation) Service(name string, settings map[string]string) error {
	return inv.serve(alone(name), settings, func(w io.Writer, h *process) {
		_, _ = fmt.Fprintf(w, "Palimpsest %s %s is ready.\n  HTTP  %s\n", Version(), name, h.http.URL())
		if h.gate != nil {
			_, _ = fmt.Fprintln(w, h.keysNeeded())
		}
	})
}

// serve runs a process of a target until it is asked to end, and has it greet once
// it is ready.
func (inv *Invocation) serve(sh target, flags map[string]string, greet func(io.Writer, *process)) error {
	cfg, settings, err := inv.configurationOf(sh, flags)
	if err != nil {
		return err
	}
	log := newLogger(cfg.Log, inv.term.Err)
	if len(sh.services) == 1 {
		log = log.With("process", sh.name)
	}
	log.Debug("configuration", "settings", settingsAttr(settings))
	sh.warn(*cfg, log)
	sh.announce(inv.term.Out, *cfg)
	for {
		h, err := assemble(inv.ctx, sh, *cfg, log)
		if err != nil {
			return err
		}
		cfg.HTTP.Listen, cfg.NATS.Listen = h.listens()
		err = inv.runOnce(h, greet)
		if !errors.Is(err, errErase) || inv.ctx.Err() != nil {
			return plain(*cfg, err)
		}
		log.Warn("services are stopped, to erase", "end", err)
		greet = func(io.Writer, *process) {} // it has
	}
}

// runOnce runs a process until it is asked to end, or to erase.
func (inv *Invocation) runOnce(h *process, greet func(io.Writer, *process)) error {
	ctx, stop := context.WithCancel(inv.ctx)
	var greeting sync.WaitGroup
	defer greeting.Wait()
	defer stop()
	return h.run(inv.ctx, func() {
		greeting.Go(func() { h.greet(ctx, inv.term.Out, greet) })
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
	_, _ = fmt.Fprintf(w, "Palimpsest %s starts.\n", title)
	line := func(label, key, file string) {
		what, origin := config.MaskURL(c.engine(key)), c.origin(key)
		if what == natsEmbedded || what == backendFile {
			what = c.dataPath(file)
		}
		if origin == "" {
			origin = "default"
		}
		_, _ = fmt.Fprintf(w, "  %-9s  %s   (%s)\n", label, what, origin)
	}
	line("broker", "nats.url", natsDir)
	line("memory", "memory", memoryFile)
	if s.auditLog() {
		line("audit log", "audit", auditFile)
	}
}

const (
	// greetAgain is how often readiness is asked for at a start.
	greetAgain = 100 * time.Millisecond
	// greetPatience is how long a start may be unready before it prints why.
	greetPatience = 2 * time.Second
)

// greet calls ready once the process is ready. If that takes long, it prints why
// and where the process listens.
func (h *process) greet(ctx context.Context, w io.Writer, ready func(io.Writer, *process)) {
	ticker := time.NewTicker(greetAgain)
	defer ticker.Stop()
	began, told := time.Now(), false
	for {
		now := h.readiness.Ready(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case now.Ready:
			ready(w, h)
			return
		case !told && time.Since(began) > greetPatience:
			told = true
			h.tellUnready(w, now)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *process) tellUnready(w io.Writer, now api.Readiness) {
	_, _ = fmt.Fprintf(w, "Palimpsest %s is not ready yet.\n", Version())
	for _, name := range slices.Sorted(maps.Keys(now.Checks)) {
		if check := now.Checks[name]; !check.OK {
			_, _ = fmt.Fprintf(w, "  %s: %s\n", name, check.Error)
		}
	}
	_, _ = fmt.Fprintf(w, "  HTTP  %s   (readiness: /readyz)\n  NATS  %s\n", h.http.URL(), h.streams.ClientURL())
}

// greet says what is listened on and one command to try.
func greet(w io.Writer, h *process) {
	_, _ = fmt.Fprintf(w, `Palimpsest %s is ready.
  HTTP  %s   (API description: /openapi.json)
  NATS  %s
  data  %s
%s
Try:
  echo "Hello, Nora here. I'm a hydrologist at Fenwick Labs." | palimpsest publish --user nora --agent assistant --session s1 --nats %s
  palimpsest --server %s search --user nora "where does Nora work?"
`, Version(), h.http.URL(), h.streams.ClientURL(), h.cfg.kept(), h.keysNeeded(), h.streams.ClientURL(), h.http.URL())
}

// keysNeeded says whether callers of the HTTP API need a key.
func (h *process) keysNeeded() string {
	switch {
	case !h.gate.Requires() && h.gate.Mode == auth.Auto:
		return "No keys are required, because the addresses are loopback and no key was made yet (palimpsest keys create)."
	case !h.gate.Requires():
		return "No keys are required: every caller that reaches the HTTP address reads and writes everything."
	case !h.gate.Ring.Any():
		return "Keys are required, and there is none: \"palimpsest keys create\" makes one."
	}
	return "Keys are required: commands read one from --api-key-file or PALIMPSEST_API_KEY."
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

func settingsAttr(s *config.Settings) string {
	var b strings.Builder
	for _, e := range s.All() {
		if e.Origin != config.Default {
			_, _ = fmt.Fprintf(&b, "%s=%s (%s) ", e.Key, e.Value, e.Origin)
		}
	}
	return b.String()
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
