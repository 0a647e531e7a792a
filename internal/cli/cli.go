// Package cli is the command line, one file a command. Commands that are still
// in internal/app are to move here.
package cli

import (
	"context"

	kongcompletion "github.com/jotaen/kong-completion"

	"palimpsest/internal/app"
)

// Main runs one command and returns its exit code.
func Main(ctx context.Context, args []string) int {
	return app.Main(ctx, args, commands()...)
}

func commands() []app.Command {
	return []app.Command{
		{Name: "search", Help: "Find facts and episodes.", Run: &searchCommand{}},
		{Name: "context", Help: "Assemble what is known for a system prompt.", Run: &contextCommand{}},
		{Name: "episodes", Help: "List episodes, newest first.", Run: &episodesCommand{}},
		{Name: "facts", Help: "List facts, newest first.", Run: &factsCommand{}},
		{Name: "history", Help: "Show all changes of a fact.", Run: &historyCommand{}},
		{Name: "explain", Help: "Show why a fact is known.", Run: &explainCommand{}},
		{Name: "correct", Help: "Give a fact a new version.", Run: &correctCommand{}},
		{Name: "confirm", Help: "Confirm a fact, so that it no longer decays.", Run: &confirmCommand{}},
		{Name: "forget", Help: "Close a fact; its history stays.", Run: &forgetCommand{}},
		{Name: "restore", Help: "Bring a closed fact back.", Run: &restoreCommand{}},
		{Name: "end-session", Help: "End a session.", Run: &endSessionCommand{}},
		{Name: "delete-scope", Help: "Close all facts of a user, an agent or a session.", Run: &deleteScopeCommand{}},
		{Name: "holds", Help: "List and release held changes of facts.", Run: &holdsCommand{}},
		{Name: "export", Help: "Export all facts in canonical form.", Run: &exportCommand{}},
		{Name: "mcp", Help: "Serve the Model Context Protocol on standard input and output, for a running Palimpsest.", Run: &mcpCommand{}},
		{Name: "verify", Help: "Compare memory store, streams and audit log with each other, also while Palimpsest runs.", Run: &verifyCommand{}},
		{Name: "reindex", Help: "Make new vectors after a change of embedder.model; those of before answer until all are there.", Run: &reindexCommand{}},
		{Name: "eval", Help: "Measure search against labelled data.", Run: &evalCommand{}},
		{Name: "doctor", Help: "Check versions, ports, data directory, engines, streams and clock.", Run: &doctorCommand{}},
		{Name: "completion", Help: "Print a completion script for bash, zsh or fish.", Run: &kongcompletion.Completion{}},
	}
}
