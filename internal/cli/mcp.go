package cli

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"palimpsest/internal/app"
	"palimpsest/internal/background"
	"palimpsest/internal/config"
	"palimpsest/internal/mcp"
	"palimpsest/internal/version"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

type mcpCommand struct {
	User    string `help:"User of calls that do not name one." placeholder:"ID"`
	Agent   string `help:"Agent of calls that do not name one." placeholder:"ID"`
	Session string `help:"Session of calls that do not name one." placeholder:"ID"`
}

// Run implements the command. Without --server it starts the configured Palimpsest
// where none runs, while it answers the client already: calls of tools wait.
func (c *mcpCommand) Run(inv *app.Invocation) error {
	term := inv.Terminal()
	memory, err := startedClient(inv, func(err error) { _, _ = fmt.Fprintf(term.Err, "palimpsest mcp: %v\n", err) })
	if err != nil {
		return err
	}
	return mcp.Serve(inv.Context(), memory, mcp.Config{
		Version: version.String(), Default: api.Scope{User: c.User, Agent: c.Agent, Session: c.Session},
		Log: slog.New(slog.NewTextHandler(term.Err, nil)),
	}, term.In, term.Out)
}

// startedClient is a client for a Palimpsest that need not run: if the configuration is
// that of one process and no server is named, it is as [call.Call.ClientOnceStarted] says.
// The process outlives the directory of its caller: unless the user named a data
// directory, it uses that of the user's account.
func startedClient(inv *app.Invocation, failed func(error)) (*client.Client, error) {
	cfg, settings, err := inv.Configuration(nil)
	if err != nil {
		return nil, err
	}
	if inv.Flags().Server != "" || !cfg.NATS.Own() {
		return inv.Client()
	}
	dir, err := filepath.Abs(cfg.Data)
	if settings.Origin("data") == config.Default {
		dir, err = background.DataHome()
	}
	if err != nil {
		return nil, err
	}
	return inv.ClientOnceStarted(dir, failed)
}
