package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"palimpsest/internal/app"
	"palimpsest/internal/assistant"
	"palimpsest/internal/background"
	"palimpsest/internal/engine"
	"palimpsest/internal/heap"
	"palimpsest/internal/terminal"
)

// The exit codes of the command line.
const (
	exitOK    = 0
	exitError = 1 // the work could not be done
	exitUsage = 2 // the words of the call are off
	exitInUse = background.InUse
)

// Main runs one command and returns its exit code. When ctx ends, it drains the
// services that run and returns.
func Main(ctx context.Context, args []string) int {
	heap.Limit(0)
	return run(ctx, args, terminal.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()})
}

// run is [Main] on a terminal of the caller.
func run(ctx context.Context, args []string, term terminal.Terminal) int {
	var flags app.Flags
	exit := -1
	parser, err := grammar(&flags, commands(), term, func(code int) { exit = code })
	if err != nil {
		return fail(term, err)
	}
	kongcompletion.Register(parser) // answers a shell that asks by COMP_LINE
	if exit >= 0 {
		return exit
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	parsed, err := parser.Parse(args)
	if exit >= 0 { // --help or --version has answered
		return exit
	}
	if err != nil {
		_, _ = fmt.Fprintf(term.Err, "palimpsest: %v\nRun \"palimpsest --help\" for the commands.\n", err)
		return exitUsage
	}
	if err := parsed.Run(app.NewInvocation(ctx, term, flags)); err != nil {
		return fail(term, err)
	}
	return exitOK
}

// grammar returns the parser that fills flags and the commands. It calls exit after
// it has printed help.
func grammar(flags *app.Flags, all []command, term terminal.Terminal, exit func(code int)) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("palimpsest"),
		kong.Description("Long-term memory for AI agents."),
		kong.Writers(term.Out, term.Err),
		kong.Exit(exit),
		kong.Vars{"assistants": strings.Join(assistant.Names(), ",")},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	}
	for _, c := range all {
		var tags []string
		if c.hidden {
			tags = append(tags, `hidden:""`)
		}
		options = append(options, kong.DynamicCommand(c.Name, c.Help, "", c.Run, tags...))
	}
	return kong.New(flags, options...)
}

func fail(term terminal.Terminal, err error) int {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	_, _ = fmt.Fprintf(term.Err, "palimpsest: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	if engine.InUse(err) {
		return exitInUse
	}
	return exitError
}
