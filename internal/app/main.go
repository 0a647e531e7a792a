package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"palimpsest/internal/terminal"
	"palimpsest/pkg/client"
)

// The exit codes of the command line.
const (
	exitOK    = 0
	exitError = 1 // the work could not be done
	exitUsage = 2 // the words of the call are off
)

// Main runs one command and returns its exit code. When ctx ends, it drains the
// services that run and returns.
//
// more are commands besides those of this package; each Run takes an
// *[Invocation].
func Main(ctx context.Context, args []string, more ...Command) int {
	limitHeap(0)
	return Run(ctx, args, terminal.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()}, more...)
}

// Command is a command of another package.
type Command struct {
	Name, Help string
	Run        any // a pointer to a struct, as kong takes it
}

// Invocation is one call of the program, as commands of other packages take it.
type Invocation = invocation

// Terminal is what the command reads and writes.
func (inv *invocation) Terminal() terminal.Terminal { return inv.term }

// Project is the tenant that the command concerns.
func (inv *invocation) Project() string { return inv.line.Project }

// Client talks to the server that the flags or the configuration name, about the
// project that they name.
func (inv *invocation) Client() (*client.Client, error) { return inv.client() }

// Version is that of the program.
func Version() string { return version() }

// Context ends when the user stops the command.
func (inv *invocation) Context() context.Context { return inv.ctx }

// Print writes v as JSON where the user asks for it, else as human does.
func (inv *invocation) Print(v any, human func(io.Writer)) error { return inv.print(v, human) }

// Run is [Main] on a terminal of the caller.
func Run(ctx context.Context, args []string, term terminal.Terminal, more ...Command) int {
	var line commandLine
	exit := -1
	parser, err := grammar(&line, term, func(code int) { exit = code }, more...)
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
	inv := &invocation{ctx: ctx, term: term, line: &line}
	if err := parsed.Run(inv); err != nil {
		return fail(term, err)
	}
	return exitOK
}

// grammar returns the parser that fills line. It calls exit after it has printed
// help.
func grammar(line *commandLine, term terminal.Terminal, exit func(code int), more ...Command) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("palimpsest"),
		kong.Description("Long-term memory for AI agents."),
		kong.Writers(term.Out, term.Err),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	}
	for _, c := range more {
		options = append(options, kong.DynamicCommand(c.Name, c.Help, "", c.Run))
	}
	return kong.New(line, options...)
}

func fail(term terminal.Terminal, err error) int {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	_, _ = fmt.Fprintf(term.Err, "palimpsest: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	return exitError
}
