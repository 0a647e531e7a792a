// Package cli is the command line. Commands that are still in internal/app are
// to move here.
package cli

import (
	"context"

	"palimpsest/internal/app"
)

// Main runs one command and returns its exit code.
func Main(ctx context.Context, args []string) int {
	return app.Main(ctx, args, commands()...)
}

func commands() []app.Command {
	return []app.Command{
		{Name: "verify", Help: "Compare memory store, streams and audit log with each other, also while Palimpsest runs.", Run: &verifyCommand{}},
		{Name: "eval", Help: "Measure answers against labelled data.", Run: &evalCommand{}},
	}
}
