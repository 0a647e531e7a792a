package topology_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const episodes = "palimpsest.episodes.default.alice._._"

func bounded(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func publish(t testing.TB, js jetstream.JetStream, subject, body string) *jetstream.PubAck {
	t.Helper()
	ack, err := js.Publish(bounded(t), subject, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return ack
}
