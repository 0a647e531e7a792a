package bare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// startLimit bounds the start of a server.
const startLimit = 30 * time.Second

// Serve runs a NATS server over a directory until ctx ends, with one stream
// that has the settings of EPISODES: file storage, limits, one replica, the same
// deduplication window and the same interval between syncs. It lacks the additions
// of the product (accounts, the subject transform, consumers).
func Serve(ctx context.Context, dir string, out io.Writer) error {
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		MaxPayload: 8 << 20, JetStream: true, StoreDir: dir, SyncInterval: 5 * time.Second,
	})
	if err != nil {
		return fmt.Errorf("configure NATS server: %w", err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(startLimit) {
		return errors.New("start NATS server: it takes no connections")
	}
	if err := declare(ctx, srv.ClientURL()); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "  NATS  %s\n", srv.ClientURL())
	<-ctx.Done()
	return nil
}

func declare(ctx context.Context, url string) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "EPISODES", Subjects: []string{"palimpsest.episodes.*.*.*.*"}, Retention: jetstream.LimitsPolicy,
		Storage: jetstream.FileStorage, Replicas: 1, Duplicates: 100 * time.Millisecond,
	})
	if err != nil {
		return fmt.Errorf("create stream: %w", err)
	}
	return nil
}
