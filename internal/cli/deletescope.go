package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"palimpsest/internal/app"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

type deleteScopeCommand struct {
	User    *string `help:"User; any unless given." placeholder:"ID"`
	Agent   *string `help:"Agent; any unless given." placeholder:"ID"`
	Session *string `help:"Session; any unless given." placeholder:"ID"`

	Yes bool `help:"Do not ask for confirmation."`
}

// Run implements the command.
func (c *deleteScopeCommand) Run(inv *app.Invocation) error {
	sel := scope.Selector{Project: inv.Project(), User: c.User, Agent: c.Agent, Session: c.Session}
	named := c.named()
	if len(named) == 0 {
		return errors.New("name --user, --agent or --session")
	}
	if !c.Yes {
		question := fmt.Sprintf("Close all facts of %s in project %q?", strings.Join(named, ", "), inv.Project())
		if err := confirmed(inv.Context(), inv.Terminal(), question); err != nil {
			return err
		}
	}
	return write(inv, func(ctx context.Context, cl *client.Client) (api.Written, error) {
		return cl.DeleteScope(ctx, sel, "")
	})
}

// named describes the levels that have a value.
func (c *deleteScopeCommand) named() []string {
	var out []string
	for _, level := range []struct {
		name string
		id   *string
	}{{"user", c.User}, {"agent", c.Agent}, {"session", c.Session}} {
		if level.id != nil && *level.id != "" {
			out = append(out, fmt.Sprintf("%s %q", level.name, *level.id))
		}
	}
	return out
}

// confirmed asks a question on the terminal and returns nil if the answer is yes.
func confirmed(ctx context.Context, t terminal.Terminal, question string) error {
	if !t.Interactive() {
		return errors.New("no terminal to ask for confirmation: use --yes")
	}
	_, _ = fmt.Fprintf(t.Err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read of a terminal cannot be cancelled
		line, err := bufio.NewReader(t.In).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case text := <-answer:
		if text != "y" && text != "yes" {
			return errors.New("not confirmed; nothing is changed")
		}
		return nil
	}
}
