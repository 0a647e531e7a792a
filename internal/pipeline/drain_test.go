package pipeline

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/pkg/events"
)

func TestDrainWhileBusy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	begun, finish := make(chan struct{}, 10), make(chan struct{})
	rt, stop := b.start(quickConfig(), onEpisode(func(context.Context, episode) ([]events.Payload, error) {
		begun <- struct{}{}
		<-finish
		return nil, nil
	}))
	b.say(user("ann"), "1")
	b.say(user("bob"), "2")
	await(t, begun)
	await(t, begun)
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Fatal("stopped before the handlers did")
	case <-time.After(50 * time.Millisecond):
	}
	close(finish)
	await(t, stopped)
	if got := rt.Stats()[0]; got.Handled != 2 {
		t.Errorf("stats %+v", got)
	}
	b.settled("EPISODES", "episodes")
}

// A drain returns messages that it cannot finish at once, not after the ack wait.
func TestDrainCancelsAndGivesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	begun := make(chan struct{}, 10)
	cfg := quickConfig()
	cfg.DrainTimeout = 50 * time.Millisecond
	_, stop := b.start(cfg, onEpisode(func(ctx context.Context, _ episode) ([]events.Payload, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	b.say(user("ann"), "1")
	b.say(user("ann"), "2")
	await(t, begun)
	stop()
	got := make(chan string, 10)
	given := time.Now()
	b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		got <- in.ID
		return nil, nil
	}))
	await(t, got)
	await(t, got)
	if took := time.Since(given); took > 2*time.Second {
		t.Errorf("redelivered after %v", took)
	}
	b.deadLetters(0)
}

// A handler slower than the ack wait keeps its message.
func TestSlowHandlerKeepsItsMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	var calls atomic.Int32
	done := make(chan struct{}, 10)
	b.start(quickConfig(), onEpisode(func(ctx context.Context, _ episode) ([]events.Payload, error) {
		calls.Add(1)
		select { // stands for work that takes longer than the ack wait of 4 s
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
		done <- struct{}{}
		return nil, nil
	}))
	b.say(user("ann"), "slow")
	await(t, done)
	b.settled("EPISODES", "episodes")
	if n := calls.Load(); n != 1 {
		t.Errorf("handled %d times", n)
	}
}

// TestServerRestart: a stream forgets message ids when its server restarts. A
// message that was published and acked before may be published again, and the
// stage must tolerate it.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	got := make(chan string, 10)
	b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		got <- in.ID
		return nil, nil
	}))
	b.say(user("ann"), "same id")
	await(t, got)
	b.settled("EPISODES", "episodes")
	port := b.server.Addr().(*net.TCPAddr).AddrPort()
	b.server.Shutdown()
	b.server.WaitForShutdown()
	b.startServer(int(port.Port()))
	b.eventually("reconnected", b.conn.IsConnected)
	pub := &broker{js: b.js, conn: b.conn, now: time.Now, timeout: patience}
	b.eventually("the stream takes the id again", func() bool {
		sequence, err := pub.Publish(b.context(), events.Meta{ID: "same id", Source: "test"}, said(user("ann"), "same id"))
		return err == nil && sequence > 1
	})
	if id := await(t, got); id != "same id" {
		t.Errorf("got %q", id)
	}
	b.settled("EPISODES", "episodes")
	b.deadLetters(0)
}

// A stage that drains during an outage returns its waiting messages at once.
func TestDrainInAnOutage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	tried := make(chan struct{}, 1000)
	cfg := Config{RetryBase: time.Hour, RetryMax: time.Hour, RetryOutage: time.Hour}
	_, stop := b.start(cfg, onEpisode(func(context.Context, episode) ([]events.Payload, error) {
		tried <- struct{}{}
		return nil, errors.New("store is down")
	}))
	b.say(user("ann"), "1")
	b.say(user("ann"), "2")
	await(t, tried)
	began := time.Now()
	stop()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("drained in %v", took)
	}
	got := make(chan string, 10)
	b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		got <- in.ID
		return nil, nil
	}))
	ids := []string{await(t, got), await(t, got)}
	if slices.Sort(ids); !slices.Equal(ids, []string{"1", "2"}) {
		t.Errorf("handled %v", ids)
	}
}
