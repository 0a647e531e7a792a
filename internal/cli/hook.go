package cli

import (
	"context"
	"fmt"
	"time"

	"palimpsest/internal/app"
	"palimpsest/internal/assistant"
)

// hookLimit bounds a hook: the assistant waits for it.
const hookLimit = 8 * time.Second

type hookCommand struct {
	Assistant string `arg:"" help:"The assistant that calls."`
	User      string `help:"User of the memory." required:"" placeholder:"ID"`
}

// Run implements the command. An assistant shows the error of a hook at each prompt
// or stops, so that one is printed and the exit code is 0.
func (c *hookCommand) Run(inv *app.Invocation) error {
	ctx, cancel := context.WithTimeout(inv.Context(), hookLimit)
	defer cancel()
	memory, err := inv.Client()
	if err == nil {
		err = assistant.Answer(ctx, memory, c.Assistant, c.User, inv.Terminal().In, inv.Terminal().Out)
	}
	if err != nil {
		_, _ = fmt.Fprintf(inv.Terminal().Err, "palimpsest hook: %v\n", err)
	}
	return nil
}
