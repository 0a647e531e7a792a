// Command palimpsest is long-term memory for AI agents.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"palimpsest/internal/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := app.Main(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
