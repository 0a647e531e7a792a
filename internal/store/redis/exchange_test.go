package redis

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
)

// cutOff has the first commands sent get no answer.
type cutOff struct{ times atomic.Int32 }

func (c *cutOff) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (c *cutOff) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if isSearch(cmd.Args()) && c.times.Add(1) == 1 {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return next(ctx, cmd)
	}
}

func (c *cutOff) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if isSearch(cmds[0].Args()) && c.times.Add(1) == 1 {
			for _, cmd := range cmds {
				cmd.SetErr(io.EOF)
			}
			return io.EOF
		}
		return next(ctx, cmds)
	}
}

// TestSearchIsRepeatedWhereAConnectionBroke: the driver repeats no command whose
// reply it hands over unread.
func TestSearchIsRepeatedWhereAConnectionBroke(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	if err := s.Apply(t.Context(), benchEffect("ana", 1), 1); err != nil {
		t.Fatal(err)
	}
	hook := new(cutOff)
	s.client.AddHook(hook)
	q := store.SearchQuery{Target: store.Facts, Limit: 3}
	for name, search := range map[string]func() (int, error){
		"alone": func() (int, error) {
			list, err := s.Facts(t.Context(), selAna(), store.FactQuery{Limit: 3})
			return len(list), err
		},
		"with others": func() (int, error) {
			hits, err := s.SearchText(t.Context(), selAna(), "note", q)
			return len(hits), err
		},
	} {
		hook.times.Store(0)
		if n, err := search(); err != nil || n != 3 {
			t.Errorf("%s: %d rows, %v", name, n, err)
		}
		if hook.times.Load() < 2 {
			t.Errorf("%s: nothing was cut off", name)
		}
	}
}
