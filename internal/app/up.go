package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"palimpsest/internal/config"
)

type upCommand struct {
	Data string `help:"Directory of whatever is kept; ./palimpsest-data unless configured." placeholder:"DIR"`
	HTTP string `name:"http" help:"Address for HTTP; 127.0.0.1:8080 unless configured." placeholder:"HOST:PORT"`
	NATS string `name:"nats" help:"Address for NATS publishers; 127.0.0.1:4222 unless configured." placeholder:"HOST:PORT"`
}

// Run implements the command: it returns once ctx has ended and everything has
// drained.
func (c *upCommand) Run(inv *invocation) error {
	return inv.serve(whole(), map[string]string{"data": c.Data, "http.listen": c.HTTP, "nats.listen": c.NATS}, greet)
}

// serve runs a process of a shape until it is asked to end, and has it greet once
// it is ready.
func (inv *invocation) serve(sh shape, flags map[string]string, greet func(io.Writer, *house)) error {
	cfg, settings, err := inv.configurationOf(sh, flags)
	if err != nil {
		return err
	}
	log := newLogger(cfg.Log, inv.term.Err)
	if len(sh.parts) == 1 {
		log = log.With("process", sh.name)
	}
	log.Debug("configuration", "settings", settingsAttr(settings))
	sh.warn(*cfg, log)
	h, err := assemble(inv.ctx, sh, *cfg, log)
	if err != nil {
		return err
	}
	return h.run(inv.ctx, func() { greet(inv.term.Out, h) })
}

// greet says what is listened on and one command to try.
func greet(w io.Writer, h *house) {
	keys := "No keys are required, because the addresses are loopback."
	if h.cfg.HTTP.Unprotected {
		keys = "No keys are required: whoever reaches the HTTP address reads and writes everything."
	}
	_, _ = fmt.Fprintf(w, `Palimpsest %s is ready.
  HTTP  %s   (API description: /openapi.json)
  NATS  %s
  data  %s
%s
Try:
  echo "Hello, Nora here. I'm a hydrologist at Fenwick Labs." | palimpsest publish --user nora --agent assistant --session s1 --nats %s
  palimpsest --server %s search --user nora "where does Nora work?"
`, version(), h.http.URL(), h.streams.ClientURL(), h.cfg.kept(), keys, h.streams.ClientURL(), h.http.URL())
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

// serviceCommand runs one service as a process of its own, on engines that
// several processes can share.
type serviceCommand struct {
	HTTP string `name:"http" help:"Address for health, readiness and metrics, and of query for its API; 127.0.0.1:8080 unless configured." placeholder:"HOST:PORT"`
}

// Run implements the command, whose name is the service's.
func (c *serviceCommand) Run(parsed *kong.Context, inv *invocation) error {
	name := parsed.Command()
	return inv.serve(alone(name), map[string]string{"http.listen": c.HTTP}, func(w io.Writer, h *house) {
		_, _ = fmt.Fprintf(w, "Palimpsest %s %s is ready.\n  HTTP  %s\n", version(), name, h.http.URL())
	})
}

// closer undoes one step of opening.
type closer struct {
	name  string
	close func(context.Context) error
}
