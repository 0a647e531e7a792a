package app

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"palimpsest/internal/cursor"
	"palimpsest/internal/store"
)

// TestGreetingFollowsReadiness: a start that is not ready says why and where to
// ask; it says that it is ready once it is.
func TestGreetingFollowsReadiness(t *testing.T) {
	t.Parallel()
	h, stop := open(t, t.TempDir())
	defer stop()
	healed(t, h)
	h.caughtUp.Set(false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, write := io.Pipe()
	go func() {
		h.greeting().Greet(ctx, write)
		_ = write.Close()
	}()
	lines := bufio.NewScanner(out)
	for _, want := range []string{"is not ready yet.", "  recovered: the memory store is being brought up to the streams", "/readyz)", h.streams.ClientURL(), "is ready.", "/openapi.json)"} {
		if want == "is ready." {
			h.caughtUp.Set(true)
		}
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), want) {
			t.Errorf("line %q, want %q", lines.Text(), want)
		}
	}
	_, _ = io.Copy(io.Discard, out)
}

// flaky is a store whose server is away for the first reads.
type flaky struct {
	store.Store
	left *atomic.Int32
}

func (f flaky) ReadCursors(ctx context.Context, readers ...string) ([]cursor.Cursor, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return f.Store.ReadCursors(ctx, readers...)
}

// TestStartWaitsForAnEngineThatGoesAway after it was opened.
func TestStartWaitsForAnEngineThatGoesAway(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	h, stop := open(t, data)
	say(t, h, 1, 1)
	stop()
	left := &atomic.Int32{}
	left.Store(2)
	h, stop = openAltered(t, loopback(data), func(*process) {}, func(h *process) { h.healing.Store = flaky{h.store, left} })
	defer stop()
	if left.Load() >= 0 {
		t.Error("nothing was read")
	}
	healed(t, h)
}
