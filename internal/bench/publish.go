package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// window is how many messages may wait for their acknowledgement.
const window = 256

// ackTarget: acknowledging may cost a fifth of what the stream itself can do.
const ackTarget = 0.8

// measurePublish compares the rate of acknowledgements with that of a bare
// server, one by one and with a window: of the broker alone, and of the whole
// product, which processes the messages meanwhile. Clients on the same machine may
// publish without a credential, through an account that keeps other clients from
// reading the acknowledgements. Clients that log in do not pass through it.
func measurePublish(ctx context.Context, b *bench) ([]Figure, error) {
	modes := []struct {
		name string
		n    int
		send sender
	}{
		{"sync", b.sync, (*publisher).oneByOne},
		{"async", b.async, (*publisher).windowed},
	}
	first := flood(floodScopes)
	var figures []Figure
	for _, mode := range modes {
		messages := flood(mode.n)
		rates := map[string][]float64{}
		var sides []func(context.Context) error
		for _, s := range publishSides {
			sides = append(sides, func(ctx context.Context) error {
				return b.with(ctx, s.peer, func(p *peer) error {
					// What a server does once only (files, subjects) is not timed.
					if _, err := p.publish(ctx, s.who, first, (*publisher).windowed); err != nil {
						return err
					}
					took, err := p.publish(ctx, s.who, messages, mode.send)
					rates[s.name] = append(rates[s.name], float64(mode.n)/took.Seconds())
					return err
				})
			})
		}
		if err := b.rounds(ctx, sides...); err != nil {
			return nil, err
		}
		for _, s := range publishSides[1:] {
			p := pair{rates[s.name], rates[publishSides[0].name]}
			figures = append(figures, p.over("publish."+mode.name+"."+s.name, unitMessages, Higher, ackTarget))
		}
	}
	return figures, nil
}

// publishSides are those whose acknowledgements are compared, the bare server
// first.
var publishSides = []struct {
	name, peer string
	who        caller
}{
	{"bare", PeerBare, anonymous},
	{"broker", PeerBroker, owner},
	{"broker.anonymous", PeerBroker, anonymous},
	{"whole", PeerWhole, owner},
	{"whole.anonymous", PeerWhole, anonymous},
}

// caller is the identity of a client at the server.
type caller bool

const (
	anonymous caller = false
	owner     caller = true
)

// publisher is a bare client.
type publisher struct {
	js     jetstream.JetStream
	failed atomic.Pointer[error]
}

// sender is a way to send messages.
type sender func(*publisher, context.Context, []message) error

// publish connects and returns how long sending took, acknowledgements and all.
func (p *peer) publish(ctx context.Context, who caller, messages []message, send sender) (time.Duration, error) {
	conn, err := p.connect(who)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	var pub publisher
	pub.js, err = jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(window),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) { pub.failed.Store(&err) }))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = send(&pub, ctx, messages)
	return time.Since(began), err
}

func (p *peer) connect(who caller) (*nats.Conn, error) {
	var options []nats.Option
	if who == owner {
		login, err := p.login(p.dir)
		if err != nil {
			return nil, fmt.Errorf("log in: %w", err)
		}
		options = append(options, login)
	}
	conn, err := nats.Connect(p.NATS, options...)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return conn, nil
}

func (p *publisher) oneByOne(ctx context.Context, messages []message) error {
	for _, m := range messages {
		if _, err := p.js.Publish(ctx, m.subject, m.body); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
	}
	return nil
}

func (p *publisher) windowed(ctx context.Context, messages []message) error {
	for _, m := range messages {
		if _, err := p.js.PublishAsync(m.subject, m.body, jetstream.WithStallWait(patience)); err != nil {
			return fmt.Errorf("publish: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return p.settle(ctx)
}

// settle waits until all that was sent is acknowledged.
func (p *publisher) settle(ctx context.Context) error {
	select {
	case <-p.js.PublishAsyncComplete():
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(patience):
		return errors.New("publish: not acknowledged")
	}
	if err := p.failed.Load(); err != nil {
		return fmt.Errorf("publish: %w", *err)
	}
	return nil
}
