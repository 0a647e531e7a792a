package redis

import (
	"context"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// hooks are those of one store, the first outermost. The driver lets none be added to a
// client in use.
type hooks struct {
	mu   sync.Mutex
	list []goredis.Hook
}

// addHook adds a hook to a store that [openAt] opened.
func addHook(s *Store, h goredis.Hook) {
	all := s.cfg.hook.(*hooks)
	all.mu.Lock()
	defer all.mu.Unlock()
	all.list = append(all.list, h)
}

func (h *hooks) now() []goredis.Hook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// DialHook implements [goredis.Hook].
func (h *hooks) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessHook implements [goredis.Hook].
func (h *hooks) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		call := next
		for _, hook := range slices.Backward(h.now()) {
			call = hook.ProcessHook(call)
		}
		return call(ctx, cmd)
	}
}

// ProcessPipelineHook implements [goredis.Hook].
func (h *hooks) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, commands []goredis.Cmder) error {
		call := next
		for _, hook := range slices.Backward(h.now()) {
			call = hook.ProcessPipelineHook(call)
		}
		return call(ctx, commands)
	}
}
