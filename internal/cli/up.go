package cli

import (
	"errors"

	"github.com/alecthomas/kong"

	"palimpsest/internal/app"
)

type upCommand struct {
	Data string `help:"Data directory; ./palimpsest-data unless configured." placeholder:"DIR"`
	HTTP string `name:"http" help:"Address for HTTP; 127.0.0.1:8080 unless configured." placeholder:"HOST:PORT"`
	NATS string `name:"nats" help:"Address for NATS publishers; 127.0.0.1:4222 unless configured." placeholder:"HOST:PORT"`

	Ephemeral bool `help:"Use a temporary data directory, which is removed at the end."`
}

// Run implements the command: it returns once the user has stopped it and everything
// has drained.
func (c *upCommand) Run(inv *app.Invocation) error {
	settings := map[string]string{"data": c.Data, "http.listen": c.HTTP, "nats.listen": c.NATS}
	if !c.Ephemeral {
		return inv.Up(settings)
	}
	if c.Data != "" {
		return errors.New("--data and --ephemeral exclude each other")
	}
	return inv.UpEphemeral(settings)
}

// serviceCommand runs one service as a process of its own, on engines that
// several processes can share.
type serviceCommand struct {
	HTTP string `name:"http" help:"Address for health, readiness and metrics, and of query for its API; 127.0.0.1:8080 unless configured." placeholder:"HOST:PORT"`
}

// Run implements the command, whose name is the service's.
func (c *serviceCommand) Run(parsed *kong.Context, inv *app.Invocation) error {
	return inv.Service(parsed.Command(), map[string]string{"http.listen": c.HTTP})
}
