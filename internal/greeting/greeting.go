// Package greeting prints the first lines of a process: the engines that it uses, the
// engines that it waits for, and its addresses.
package greeting

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"palimpsest/internal/auth"
	"palimpsest/internal/poll"
	"palimpsest/pkg/api"
)

// Engine is an engine that a process uses, and what chose it; Origin is empty for a
// default.
type Engine struct{ Label, Place, Origin string }

// Announce prints the engines that a process is about to use. title is its version,
// and its service if it is one of several.
func Announce(w io.Writer, title string, engines []Engine) {
	_, _ = fmt.Fprintf(w, "Palimpsest %s starts.\n", title)
	for _, e := range engines {
		if e.Origin == "" {
			e.Origin = "default"
		}
		_, _ = fmt.Fprintf(w, "  %-9s  %s   (%s)\n", e.Label, e.Place, e.Origin)
	}
}

// Process is a process that has its addresses.
type Process struct {
	Version string
	Service string // empty for all services
	HTTP    string // URL of the HTTP server
	NATS    string // URL for publishers
	Data    string // where the data is kept
	Gate    *auth.Gate
	Ready   func(context.Context) api.Readiness
}

const (
	// again is how often readiness is asked for at a start.
	again = 100 * time.Millisecond
	// patience is how long a start may be unready before it prints why.
	patience = 2 * time.Second
)

// Greet prints how to call the process once it is ready. If that takes long, it prints
// why and where the process listens. It returns when it has printed, or ctx has ended.
func (p Process) Greet(ctx context.Context, w io.Writer) {
	began, told := time.Now(), false
	_ = poll.Until(ctx, again, func() (bool, error) { // ctx has ended
		now := p.Ready(ctx)
		switch {
		case ctx.Err() != nil:
		case now.Ready:
			p.Print(w)
		case !told && time.Since(began) > patience:
			told = true
			p.unready(w, now)
		}
		return now.Ready, ctx.Err()
	})
}

func (p Process) unready(w io.Writer, now api.Readiness) {
	_, _ = fmt.Fprintf(w, "Palimpsest %s is not ready yet.\n", p.Version)
	for _, name := range slices.Sorted(maps.Keys(now.Checks)) {
		if check := now.Checks[name]; !check.OK {
			_, _ = fmt.Fprintf(w, "  %s: %s\n", name, check.Error)
		}
	}
	_, _ = fmt.Fprintf(w, "  HTTP  %s   (readiness: /readyz)\n  NATS  %s\n", p.HTTP, p.NATS)
}

// Print says what is listened on, and for all services one command to try.
func (p Process) Print(w io.Writer) {
	if p.Service != "" {
		_, _ = fmt.Fprintf(w, "Palimpsest %s %s is ready.\n  HTTP  %s\n", p.Version, p.Service, p.HTTP)
		if p.Gate != nil {
			_, _ = fmt.Fprintln(w, p.keys())
		}
		return
	}
	_, _ = fmt.Fprintf(w, `Palimpsest %s is ready.
  HTTP  %s   (API description: /openapi.json)
  NATS  %s
  data  %s
%s
Try:
  echo "Hello, Nora here. I'm a hydrologist at Fenwick Labs." | palimpsest publish --user nora --agent assistant --session s1 --nats %s
  palimpsest --server %s search --user nora "where does Nora work?"
`, p.Version, p.HTTP, p.NATS, p.Data, p.keys(), p.NATS, p.HTTP)
}

// keys says whether callers of the HTTP API need a key.
func (p Process) keys() string {
	switch {
	case !p.Gate.Requires() && p.Gate.Mode == auth.Auto:
		return "No keys are required, because the addresses are loopback and no key was made yet (palimpsest keys create)."
	case !p.Gate.Requires():
		return "No keys are required: every caller that reaches the HTTP address reads and writes everything."
	case !p.Gate.Ring.Any():
		return "Keys are required, and there is none: \"palimpsest keys create\" makes one."
	}
	return "Keys are required: commands read one from --api-key-file or PALIMPSEST_API_KEY."
}
