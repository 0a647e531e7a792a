package engine

import (
	"context"
	"errors"
	"fmt"
)

// Closers undo what was opened. The zero value is ready to use.
type Closers struct{ steps []step }

type step struct {
	name  string
	close func(context.Context) error
}

// Later adds what undoes one step of opening; name is what an error names.
func (c *Closers) Later(name string, undo func(context.Context) error) {
	c.steps = append(c.steps, step{name, undo})
}

// Close undoes what was opened, last first.
func (c *Closers) Close(ctx context.Context) error {
	var errs []error
	for i := len(c.steps) - 1; i >= 0; i-- {
		if err := c.steps[i].close(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.steps[i].name, err))
		}
	}
	c.steps = nil
	return errors.Join(errs...)
}
