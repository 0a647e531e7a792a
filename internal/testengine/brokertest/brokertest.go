package brokertest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
)

// limit bounds everything that a test waits for here.
const limit = 30 * time.Second

// Env is a running broker.
type Env struct {
	// URL is where any client connects; without a credential it may publish
	// episodes and nothing else.
	URL string
	// Dir is the data directory, see broker.Endpoint.
	Dir string
	// Conn is a connection that may do everything, and JS the API on it. Both
	// outlive Restart.
	Conn *nats.Conn
	JS   jetstream.JetStream
	// Broker is the server itself.
	Broker *broker.Embedded
}

// Start runs a broker until the test ends.
func Start(t testing.TB) *Env {
	t.Helper()
	return StartWith(t, broker.EmbeddedConfig{})
}

// StartWith is Start with a configuration; an empty Dir becomes a temporary one.
func StartWith(t testing.TB, cfg broker.EmbeddedConfig) *Env {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	b, err := broker.StartEmbedded(cfg)
	if err != nil {
		t.Fatalf("start broker: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := b.Shutdown(ctx); err != nil {
			t.Errorf("stop broker: %v", err)
		}
	})
	return &Env{URL: b.ClientURL(), Dir: cfg.Dir, Conn: b.Conn(), JS: b.JetStream(), Broker: b}
}

// Restart stops the server and starts it again on the same data and address.
func (e *Env) Restart(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := e.Broker.Restart(ctx); err != nil {
		t.Fatal(err)
	}
}

// Connect returns another connection that may do everything, over the network,
// closed when the test ends.
func (e *Env) Connect(t testing.TB) *nats.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cfg, err := broker.Endpoint(e.Dir)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := broker.Connect(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// Anonymous returns a connection without a credential, closed when the test
// ends.
func (e *Env) Anonymous(t testing.TB, options ...nats.Option) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(e.URL, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}
