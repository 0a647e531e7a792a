package pipeline

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// BenchmarkConsume measures what the runtime itself costs: messages of 500 users
// through an empty handler, from the stream to the confirmed ack. "bare" is the
// broker's part of it: fetch and ack, nothing else.
func BenchmarkConsume(b *testing.B) {
	for _, partitions := range []int{1, 16} {
		b.Run(fmt.Sprintf("one by one/%d", partitions), func(b *testing.B) {
			benchConsume(b, partitions, func(env *bench, names []string, passed func(int)) (stop func()) {
				return env.serve(names, On(func(context.Context, episode) ([]events.Payload, error) {
					passed(1)
					return nil, nil
				}))
			})
		})
		b.Run(fmt.Sprintf("runs/%d", partitions), func(b *testing.B) {
			benchConsume(b, partitions, func(env *bench, names []string, passed func(int)) (stop func()) {
				return env.serve(names, OnRun(func(_ context.Context, in []episode) ([]events.Payload, error) {
					passed(len(in))
					return nil, nil
				}))
			})
		})
		b.Run(fmt.Sprintf("bare/%d", partitions), func(b *testing.B) { benchConsume(b, partitions, (*bench).takeBare) })
	}
}

// benchConsume fills EPISODES with b.N messages, then times how long take needs
// to pass all of them.
func benchConsume(b *testing.B, partitions int, take func(env *bench, names []string, passed func(int)) (stop func())) {
	b.Helper()
	env := newBench(b)
	env.stream("EPISODES", jetstream.LimitsPolicy, "palimpsest.episodes.*.*.*.*")
	names := make([]string, partitions)
	for p := range names {
		names[p] = fmt.Sprintf("ingest-%02d", p)
		env.consumer("EPISODES", names[p], func(c *jetstream.ConsumerConfig) {
			c.MaxAckPending = 1000
			if partitions > 1 {
				c.FilterSubject = fmt.Sprintf("palimpsest.episodes.%d.>", p)
			}
		})
	}
	for i := range b.N {
		msg, err := encode(events.Meta{ID: fmt.Sprint(i), Source: "bench"}, said(scope.Scope{Project: "p", User: fmt.Sprint(i % 500)}, "hello there"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := env.js.PublishMsgAsync(msg, jetstream.WithStallWait(patience)); err != nil {
			b.Fatal(err)
		}
	}
	await(b, env.js.PublishAsyncComplete())
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	b.ResetTimer()
	began := time.Now()
	stop := take(env, names, func(n int) {
		if left.Add(int64(-n)) == 0 {
			close(done)
		}
	})
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		b.Fatal("stuck")
	}
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "msg/s")
	b.StopTimer()
	stop()
}

// serve runs one stage a consumer.
func (b *bench) serve(names []string, route Route) (stop func()) {
	stages := make([]Stage, len(names))
	for i, name := range names {
		stages[i] = Consume("EPISODES", name, route)
	}
	_, stop = b.start(Config{}, stages...)
	return stop
}

// takeBare fetches and acks, and has the last of each batch confirmed.
func (b *bench) takeBare(names []string, passed func(int)) (stop func()) {
	ctx, cancel := context.WithCancel(b.context())
	var g errgroup.Group
	for _, name := range names {
		c, err := b.js.Consumer(ctx, "EPISODES", name)
		if err != nil {
			b.tb.Fatal(err)
		}
		g.Go(func() error {
			for ctx.Err() == nil {
				batch, err := c.Fetch(512, jetstream.FetchMaxWait(lull))
				if err != nil {
					return err
				}
				var last jetstream.Msg
				n := 0
				for msg := range batch.Messages() {
					if last != nil {
						if err := last.Ack(); err != nil {
							return err
						}
					}
					last = msg
					n++
				}
				if n == 0 {
					continue // nothing left, or not yet
				}
				if err := last.DoubleAck(ctx); err != nil {
					return err
				}
				passed(n)
			}
			return nil
		})
	}
	return func() {
		cancel()
		if err := g.Wait(); err != nil {
			b.tb.Error(err)
		}
	}
}
