package cli

import (
	"palimpsest/internal/app"
	"palimpsest/pkg/api"
)

type endSessionCommand struct {
	Session string `arg:"" help:"The session."`
	User    string `help:"User of the session." placeholder:"ID"`
	Agent   string `help:"Agent of the session." placeholder:"ID"`
	Cause   string `help:"Why it ends." enum:"explicit,disconnect,timeout" default:"explicit"`
}

// Run implements the command.
func (c *endSessionCommand) Run(inv *app.Invocation) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	out, err := cl.EndSession(inv.Context(), api.Scope{User: c.User, Agent: c.Agent, Session: c.Session}, c.Cause)
	if err != nil {
		return err
	}
	return printWritten(inv, out)
}
