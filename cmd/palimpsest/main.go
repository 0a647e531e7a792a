// Command palimpsest is long-term memory for AI agents.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"palimpsest/internal/cli"
)

// exitAtOnce is the exit code after a second signal.
const exitAtOnce = 130

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // a second one must not be lost, however soon it comes
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitAtOnce)
	}()
	os.Exit(cli.Main(ctx, os.Args[1:]))
}
