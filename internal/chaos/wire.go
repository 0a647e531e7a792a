package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
)

// connections is how many NATS connections the publishers share.
const connections = 8

// life is the broker as publishers reach it, for as long as it lives.
type life struct {
	ctx   context.Context //nolint:containedctx // it ends with the broker, not with a publisher
	end   context.CancelFunc
	conns []*nats.Conn
	js    []jetstream.JetStream
}

// connect opens the connections of one life.
func connect(ctx context.Context, to broker.ConnectConfig) (*life, error) {
	l := &life{}
	l.ctx, l.end = context.WithCancel(ctx)
	for range connections {
		conn, err := broker.Connect(ctx, to)
		if err != nil {
			l.close()
			return nil, err
		}
		l.conns = append(l.conns, conn)
		js, err := broker.NewJetStream(conn)
		if err != nil {
			l.close()
			return nil, err
		}
		l.js = append(l.js, js)
	}
	return l, nil
}

func (l *life) close() {
	l.end()
	for _, c := range l.conns {
		c.Close()
	}
}

// wire leads publishers to whichever broker lives, and lets them wait for the
// next while none does.
type wire struct {
	mu      sync.Mutex
	current *life
	changed chan struct{} // closed with the next change of current
}

func newWire() *wire { return &wire{changed: make(chan struct{})} }

func (w *wire) set(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current != nil {
		w.current.close()
	}
	w.current = l
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *wire) wait(ctx context.Context) (*life, error) {
	for {
		w.mu.Lock()
		current, changed := w.current, w.changed
		w.mu.Unlock()
		if current != nil {
			return current, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

const (
	// ackLimit is how long a publisher waits for one acknowledgement.
	ackLimit = 10 * time.Second
	// retryPause keeps a publisher that is refused from spinning.
	retryPause = 20 * time.Millisecond
)

// publish publishes until it is acknowledged, as often as that takes; tries
// counts from 1.
func (w *wire) publish(ctx context.Context, via int, msg *nats.Msg) (ack *jetstream.PubAck, tries int, err error) {
	for {
		l, err := w.wait(ctx)
		if err != nil {
			return nil, tries, err
		}
		tries++
		attempt, cancel := context.WithTimeout(l.ctx, ackLimit)
		ack, err := l.js[via%len(l.js)].PublishMsg(attempt, msg)
		cancel()
		if err == nil {
			return ack, tries, nil
		}
		if errors.Is(err, nats.ErrMaxPayload) {
			return nil, tries, fmt.Errorf("publish: %w", err)
		}
		if err := pause(ctx, retryPause); err != nil {
			return nil, tries, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
