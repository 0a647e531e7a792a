package brokertest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Steal takes the next n messages away from the reader of a stream that has no
// durable name, as if they had got lost on the way: the consumer has delivered them.
func Steal(tb testing.TB, js jetstream.JetStream, stream string, n int) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	from, err := js.Stream(ctx, stream)
	if err != nil {
		tb.Fatal(err)
	}
	name := ""
	list := from.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Config.Durable == "" {
			name = info.Name
		}
	}
	reader, err := from.Consumer(ctx, name)
	if err != nil {
		tb.Fatalf("who reads %s: %v, %v", stream, list.Err(), err)
	}
	for range n {
		if _, err := reader.Next(); err != nil {
			tb.Fatal(err)
		}
	}
}
