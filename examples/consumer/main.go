// Command consumer is an example: it binds a durable consumer of its own to the
// AUDIT stream and appends to a file what became known, each effect once. See
// docs/consumer.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// stream holds every effect, in the order in which they were committed.
const stream = "AUDIT"

type options struct {
	url, seed, creds string
	name, out        string
}

func main() {
	var o options
	flag.StringVar(&o.url, "url", nats.DefaultURL, "where the broker is")
	flag.StringVar(&o.seed, "seed", "", "file with an NKey seed, such as palimpsest-data/nats/broker.nk")
	flag.StringVar(&o.creds, "creds", "", "credentials file, in its place")
	flag.StringVar(&o.name, "name", "example", "name of the durable consumer")
	flag.StringVar(&o.out, "out", "facts.jsonl", "file to append to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		slog.Error("consumer failed", "error", err)
		os.Exit(1)
	}
}

// run follows the stream until ctx ends.
func run(ctx context.Context, o options) (err error) {
	notes, err := openNotes(o.out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, notes.Close()) }()
	conn, err := connect(o)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	messages, err := bind(ctx, conn, o.name)
	if err != nil {
		return fmt.Errorf("bind to %s: %w", stream, err)
	}
	defer messages.Stop()
	for {
		msg, err := messages.Next(jetstream.NextContext(ctx))
		if ctx.Err() != nil {
			return nil // which is how it ends
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", stream, err)
		}
		if err := take(ctx, msg, notes); err != nil {
			return err
		}
	}
}

func connect(o options) (*nats.Conn, error) {
	with := []nats.Option{nats.Name("consumer " + o.name), nats.MaxReconnects(-1)}
	if o.seed != "" {
		seed, err := nats.NkeyOptionFromSeed(o.seed)
		if err != nil {
			return nil, err
		}
		with = append(with, seed)
	}
	if o.creds != "" {
		with = append(with, nats.UserCredentials(o.creds))
	}
	return nats.Connect(o.url, with...)
}

// bind makes the consumer, or finds it as it was left: the server keeps its
// place. One message is out at a time, so that a message that is delivered again,
// after a crash, comes before its successors.
func bind(ctx context.Context, conn *nats.Conn, name string) (jetstream.MessagesContext, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	consumer, err := js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverAllPolicy,
		MaxAckPending: 1, AckWait: 10 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	return consumer.Messages()
}

// take writes an effect down, and only then acknowledges it: dying in between
// brings it again, and the notes know it then.
func take(ctx context.Context, msg jetstream.Msg, notes *notes) error {
	at, err := msg.Metadata()
	if err != nil {
		return err
	}
	meta, data, err := events.Decode(events.Raw{
		Subject: msg.Subject(), Header: msg.Headers(), Body: msg.Data(), Stream: stream, Sequence: at.Sequence.Stream, Time: at.Timestamp,
	})
	if err != nil {
		return fmt.Errorf("decode %d: %w", at.Sequence.Stream, err)
	}
	if meta.Kind == events.KindEffectCommitted { // AUDIT may keep other kinds
		effect, err := events.DecodeData[events.EffectCommitted](meta, data)
		if err != nil {
			return fmt.Errorf("decode %d: %w", at.Sequence.Stream, err)
		}
		if err := notes.add(effect); err != nil {
			return err
		}
	}
	if err := msg.DoubleAck(ctx); err != nil && ctx.Err() == nil {
		slog.Warn("not acknowledged; it comes again", "sequence", at.Sequence.Stream, "error", err)
	}
	return nil
}
