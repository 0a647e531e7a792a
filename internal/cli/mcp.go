package cli

import (
	"fmt"
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

// Run implements the command. Without --server it starts the configured Palimpsest
// where none runs, while it answers the client already: calls of tools wait.
func (c *mcpCommand) Run(inv *app.Invocation) error {
	term := inv.Terminal()
	memory, err := inv.StartedClient(func(err error) { _, _ = fmt.Fprintf(term.Err, "palimpsest mcp: %v\n", err) })
	if err != nil {
		return err
	}
	return mcp.Serve(inv.Context(), memory, mcp.Config{
		Version: app.Version(), Default: api.Scope{User: c.User, Agent: c.Agent, Session: c.Session},
		Log: slog.New(slog.NewTextHandler(term.Err, nil)),
	}, term.In, term.Out)
}
