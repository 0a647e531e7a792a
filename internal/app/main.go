package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

// The exit codes of the command line.
const (
	exitOK    = 0
	exitError = 1 // the work could not be done
	exitUsage = 2 // the words of the call are off
)

// Terminal is what the command line reads and writes.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
}

// Main runs one command and returns its exit code. It returns when ctx ends and
// what was started has drained.
func Main(ctx context.Context, args []string) int {
	limitHeap(0)
	return run(ctx, args, Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ()})
}

func run(ctx context.Context, args []string, term Terminal) int {
	var line commandLine
	exit := -1
	parser, err := grammar(&line, term, func(code int) { exit = code })
	if err != nil {
		return fail(term, err)
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

// grammar parses calls into line; exit is told when help was the answer.
func grammar(line *commandLine, term Terminal, exit func(code int)) (*kong.Kong, error) {
	return kong.New(line,
		kong.Name("palimpsest"),
		kong.Description("Long-term memory for AI agents."),
		kong.Writers(term.Out, term.Err),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	)
}

func fail(term Terminal, err error) int {
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	_, _ = fmt.Fprintf(term.Err, "palimpsest: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	return exitError
}
