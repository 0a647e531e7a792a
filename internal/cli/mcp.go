package cli

import (
	"log/slog"

	"palimpsest/internal/app"
	"palimpsest/internal/mcp"
	"palimpsest/pkg/api"
)

type mcpCommand struct {
	User    string `help:"User of calls that name none." placeholder:"ID"`
	Agent   string `help:"Agent of calls that name none." placeholder:"ID"`
	Session string `help:"Session of calls that name none." placeholder:"ID"`
}

// Run implements the command. The server need not run yet: tools say so where it
// does not answer.
func (c *mcpCommand) Run(inv *app.Invocation) error {
	memory, err := inv.Client()
	if err != nil {
		return err
	}
	term := inv.Terminal()
	return mcp.Serve(inv.Context(), memory, mcp.Config{
		Version: app.Version(), Default: api.Scope{User: c.User, Agent: c.Agent, Session: c.Session},
		Log: slog.New(slog.NewTextHandler(term.Err, nil)),
	}, term.In, term.Out)
}
