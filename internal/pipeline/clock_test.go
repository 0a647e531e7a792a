package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// TestP7ClockPublishesWhatItOwes: a handler that claimed something before it
// returned a tick does not return it again. While its stream is away the tick
// waits, and nothing else is handled in front of it.
func TestP7ClockPublishesWhatItOwes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	if err := b.js.DeleteStream(b.context(), "TICKS"); err != nil {
		t.Fatal(err)
	}
	runs := make(chan int, 1000)
	n := 0
	rt, stop := b.start(quickConfig(), Clock("clock", 5*time.Millisecond, nil, func(context.Context, time.Time) ([]events.Payload, error) {
		n++
		runs <- n
		if n == 1 {
			return []events.Payload{tick(user("ann"), 7)}, nil
		}
		return nil, nil
	}))
	await(t, runs)
	b.eventually("tried more than once", func() bool { return rt.Stats()[0].Retried > 1 })
	if len(runs) > 0 {
		t.Error("handled again before the tick was published")
	}
	ticks := b.stream("TICKS", jetstream.LimitsPolicy, "palimpsest.ticks.>")
	await(t, runs)
	stop()
	info, err := ticks.Info(b.context())
	if err != nil || info.State.Msgs != 1 {
		t.Errorf("%+v, %v; want the tick", info, err)
	}
}

func TestClockRunsAtStartAtIntervalsAndWhenWoken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	wake := make(chan struct{}, 1)
	ran := make(chan time.Time, 100)
	runs := 0
	rt, stop := b.start(quickConfig(),
		Clock("slow", time.Hour, wake, func(_ context.Context, now time.Time) ([]events.Payload, error) {
			ran <- now
			if runs++; runs == 2 {
				panic("clockwork")
			}
			return []events.Payload{tick(user("ann"), 5)}, nil
		}),
		Clock("quick", 5*time.Millisecond, nil, func(context.Context, time.Time) ([]events.Payload, error) { return nil, nil }),
	)
	await(t, ran)
	wake <- struct{}{}
	await(t, ran)
	await(t, ran) // after the panic
	b.eventually("quick clock ran", func() bool { stats := rt.Stats(); return len(stats) > 1 && stats[1].Handled > 3 })
	stop()
	if got := rt.Stats()[0]; got.Handled != 2 || got.Panics != 1 {
		t.Errorf("stats %+v", got)
	}
	stream, err := b.js.Stream(b.context(), "TICKS")
	if err != nil {
		t.Fatal(err)
	}
	if msgs := stream.CachedInfo().State.Msgs; msgs != 1 {
		t.Errorf("%d ticks: two runs that agree must publish one id", msgs)
	}
}
