package cli

import (
	"context"

	"palimpsest/internal/app"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type endSessionCommand struct {
	Session string `arg:"" help:"The session."`
	User    string `help:"User of the session." placeholder:"ID"`
	Agent   string `help:"Agent of the session." placeholder:"ID"`
	Cause   string `help:"Cause of the end." enum:"explicit,disconnect,timeout" default:"explicit"`
}

// Run implements the command.
func (c *endSessionCommand) Run(inv *app.Invocation) error {
	return write(inv, func(ctx context.Context, cl *client.Client) (api.Written, error) {
		return cl.EndSession(ctx, api.Scope{User: c.User, Agent: c.Agent, Session: c.Session}, c.Cause)
	})
}
