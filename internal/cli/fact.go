package cli

import (
	"context"
	"strings"

	"palimpsest/internal/app"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
)

// factCommand changes one fact.
type factCommand struct {
	ID       string `arg:"" help:"The fact: its id, or the last 8 hex digits."`
	Revision uint64 `help:"Fail unless this revision is the newest." placeholder:"N"`
}

type correctCommand struct {
	factCommand
	Text     []string `arg:"" help:"The new text."`
	Category string   `help:"New category." placeholder:"NAME"`
	Object   string   `help:"New object." placeholder:"TEXT"`
}

// Run implements the command.
func (c *correctCommand) Run(inv *app.Invocation) error {
	return write(inv, func(ctx context.Context, cl *client.Client) (api.Written, error) {
		return cl.Correct(ctx, c.ID, c.Revision, api.Correct{Text: strings.Join(c.Text, " "), Category: c.Category, Object: c.Object})
	})
}

type confirmCommand struct{ factCommand }

// Run implements the command.
func (c *confirmCommand) Run(inv *app.Invocation) error {
	return write(inv, func(ctx context.Context, cl *client.Client) (api.Written, error) {
		return cl.Confirm(ctx, c.ID, c.Revision)
	})
}

type restoreCommand struct{ factCommand }

// Run implements the command.
func (c *restoreCommand) Run(inv *app.Invocation) error {
	return write(inv, func(ctx context.Context, cl *client.Client) (api.Written, error) {
		return cl.Restore(ctx, c.ID, c.Revision)
	})
}

type forgetCommand struct{ factCommand }

// Run implements the command.
func (c *forgetCommand) Run(inv *app.Invocation) error {
	return write(inv, func(ctx context.Context, cl *client.Client) (api.Written, error) {
		return cl.Delete(ctx, c.ID, c.Revision)
	})
}
