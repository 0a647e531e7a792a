// Package poll looks at something again and again.
package poll

import (
	"context"
	"time"
)

// Until calls look until it returns true or an error, which Until returns, with a pause
// after each call. It returns the error of ctx where that ends before.
func Until(ctx context.Context, pause time.Duration, look func() (done bool, err error)) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
