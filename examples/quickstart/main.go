// Command quickstart is an example: it records a message, waits for its facts,
// searches, and prints a block for a system prompt.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

func main() {
	server := flag.String("server", "http://127.0.0.1:8080", "address of a running Palimpsest")
	user := flag.String("user", "nora", "user of the message")
	flag.Parse()
	if err := run(context.Background(), *server, *user, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server, user string, out io.Writer) error {
	memory, err := client.New(server)
	if err != nil {
		return err
	}
	written, err := memory.Record(ctx, api.Record{
		Scope:    api.Scope{User: user, Agent: "assistant", Session: "s1"},
		Messages: api.Messages{{Role: "user", Content: "I moved to Bergen last week."}},
		Wait:     true,
	}, "")
	if err != nil {
		return err
	}
	for _, r := range written.Results {
		_, _ = fmt.Fprintf(out, "%s %s\n", r.Event, r.Memory)
	}

	const question = "Where do I live?"
	found, err := memory.Search(ctx, api.Search{Selector: api.Selector{User: &user}, Text: question, Limit: 1})
	if err != nil {
		return err
	}
	for _, hit := range found.Results {
		_, _ = fmt.Fprintf(out, "found: %s\n", hit.Text)
	}

	known, err := memory.Assemble(ctx, api.ContextQuery{Selector: api.Selector{User: &user}, Text: question})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprint(out, known.Context)
	return nil
}
