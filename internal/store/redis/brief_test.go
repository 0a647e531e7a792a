package redis

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// TestRequestsAreBounded: whatever the caller's context allows, a command and a
// pipeline end within requestLimit, and earlier where the context does.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	var left time.Duration
	see := func(ctx context.Context) {
		until, _ := ctx.Deadline()
		left = time.Until(until)
	}
	command := brief{}.ProcessHook(func(ctx context.Context, _ goredis.Cmder) error { see(ctx); return nil })
	pipeline := brief{}.ProcessPipelineHook(func(ctx context.Context, _ []goredis.Cmder) error { see(ctx); return nil })
	for name, ask := range map[string]func(context.Context) error{
		"command":  func(ctx context.Context) error { return command(ctx, nil) },
		"pipeline": func(ctx context.Context) error { return pipeline(ctx, nil) },
	} {
		for _, limit := range []time.Duration{time.Second, 5 * time.Minute} {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			if err := ask(ctx); err != nil || left <= 0 || left > min(limit, requestLimit) {
				t.Errorf("%s under %v: %v, bounded by %v", name, limit, err, left)
			}
			cancel()
		}
	}
}
