package pipeline

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// BenchmarkPinned measures what the runtime itself costs: messages through an
// empty handler, from the stream to the confirmed ack.
func BenchmarkPinned(b *testing.B) {
	for _, partitions := range []int{1, 16} {
		b.Run(fmt.Sprint(partitions), func(b *testing.B) {
			env := newBench(b)
			env.stream("EPISODES", jetstream.LimitsPolicy, "palimpsest.episodes.*.*.*.*")
			var stages []Stage
			var left atomic.Int64
			left.Store(int64(b.N))
			done := make(chan struct{})
			handle := func(context.Context, episode) ([]events.Payload, error) {
				if left.Add(-1) == 0 {
					close(done)
				}
				return nil, nil
			}
			for p := range partitions {
				name := fmt.Sprintf("ingest-%02d", p)
				env.consumer("EPISODES", name, pinned, func(c *jetstream.ConsumerConfig) {
					c.MaxAckPending = 1000
					if partitions > 1 {
						c.FilterSubject = fmt.Sprintf("palimpsest.episodes.%d.>", p)
					}
				})
				stages = append(stages, Consume(name, On(handle)))
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
			b.ResetTimer()
			began := time.Now()
			_, stop := env.start(Config{}, stages...)
			select {
			case <-done:
			case <-time.After(5 * time.Minute):
				b.Fatal("stuck")
			}
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "msg/s")
			b.StopTimer()
			stop()
		})
	}
}
