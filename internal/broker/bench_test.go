package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/testengine/brokertest"
)

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		e, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		if err := e.Shutdown(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	env := brokertest.Start(b)
	for name, conn := range map[string]*nats.Conn{
		"in process": env.Conn, "network": env.Connect(b), "anonymous": env.Anonymous(b),
	} {
		js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(256))
		if err != nil {
			b.Fatal(err)
		}
		body := make([]byte, 512)
		b.Run(name+"/sync", func(b *testing.B) {
			for b.Loop() {
				if _, err := js.Publish(context.Background(), episodes, body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/async", func(b *testing.B) {
			for b.Loop() {
				if _, err := js.PublishAsync(episodes, body); err != nil {
					b.Fatal(err)
				}
			}
			select {
			case <-js.PublishAsyncComplete():
			case <-time.After(time.Minute):
				b.Fatal("not acknowledged")
			}
		})
	}
}
