package redis

import (
	"context"
	"fmt"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/testengine/redisdouble"
)

// recorded are the shapes of the commands that the double is known to answer as
// the real server does.
var recorded = sync.OnceValues(func() (map[string]bool, error) {
	return redisdouble.Recorded(func(file string) (string, error) {
		raw, err := scripts.ReadFile("scripts/" + file)
		return string(raw), err
	})
})

// recordedOnly fails a test that sends a command of another shape: the double's
// answer to it was compared with nothing.
type recordedOnly struct{ testing.TB }

func (r recordedOnly) check(cmd goredis.Cmder) {
	shapes, err := recorded()
	if err != nil {
		r.Error(err)
		return
	}
	args := make([]string, len(cmd.Args()))
	for i, a := range cmd.Args() {
		if raw, ok := a.([]byte); ok {
			a = string(raw)
		}
		args[i] = fmt.Sprint(a)
	}
	switch shape := redisdouble.Shape(args); {
	case shape == "HELLO" || shape == "CLIENT": // the driver's
	case !shapes[shape] && news(shape):
		r.Errorf("no command of this shape is recorded in internal/testengine/redisdouble/testdata: %s\n%.300q", shape, args)
	}
}

var missed sync.Map

// news reports whether a shape was not reported before.
func news(shape string) bool {
	_, told := missed.LoadOrStore(shape, true)
	return !told
}

func (r recordedOnly) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (r recordedOnly) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		r.check(cmd)
		return next(ctx, cmd)
	}
}

func (r recordedOnly) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		for _, cmd := range cmds {
			r.check(cmd)
		}
		return next(ctx, cmds)
	}
}

// TestWhatAnOpenSendsIsRecorded: tests check what a store sends once it is open.
func TestWhatAnOpenSendsIsRecorded(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	if err := s.prepare(t.Context()); err != nil {
		t.Error(err)
	}
}
