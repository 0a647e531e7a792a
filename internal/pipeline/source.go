package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// lull is how long a delivery must have been quiet before a stopped stage
	// gives up a pull request: what arrives after it did is redelivered only
	// when the ack wait ends.
	lull = 20 * time.Millisecond
	// late is how long a fetch waits for the broker's message that the request has
	// expired. A fetch that ends earlier loses the messages that were sent just
	// before it until the ack wait ends, and on a busy machine that message is late.
	late = time.Second
	// linger lets free slots gather, so that a busy stage does not fetch its
	// messages one by one.
	linger = 2 * time.Millisecond
	// rest follows a pull request that the broker could not serve.
	rest = 250 * time.Millisecond
)

// source fetches from one consumer for as long as its stage runs.
type source struct {
	binding *binding
	log     *slog.Logger
	// want returns how many messages to fetch, waiting until there is room; 0
	// when stop is done.
	want func(stop context.Context) int
	// accept takes a message and must not block.
	accept func(jetstream.Msg)
}

// run fetches until stop is done.
func (s *source) run(stop context.Context) {
	for stop.Err() == nil {
		n := s.want(stop)
		if n == 0 {
			return
		}
		err := s.fetch(stop, n)
		if err == nil || stop.Err() != nil {
			continue
		}
		s.log.Warn("fetch", "consumer", s.binding.name, "error", err)
		select {
		case <-time.After(rest):
		case <-stop.Done():
		}
	}
}

// fetch makes one pull request and takes what it gives.
func (s *source) fetch(stop context.Context, n int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(stop), pullExpiry+late)
	defer cancel()
	// The client sends 90 % of the deadline as the request's expiry.
	ctx = patient{Context: ctx, deadline: time.Now().Add(pullExpiry * 10 / 9)}
	batch, err := s.binding.consumer.Fetch(n, jetstream.FetchContext(ctx))
	if err != nil {
		return err
	}
	s.take(stop, batch.Messages(), cancel)
	err = batch.Error()
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrTimeout) {
		return nil
	}
	return err
}

// patient claims an earlier deadline than it has.
type patient struct {
	context.Context //nolint:containedctx // it is a context
	deadline        time.Time
}

// Deadline implements [context.Context].
func (p patient) Deadline() (time.Time, bool) { return p.deadline, true }

// take accepts messages until the request has ended. Once stop is done it gives
// the request up as soon as nothing more seems to be on its way.
func (s *source) take(stop context.Context, messages <-chan jetstream.Msg, giveUp func()) {
	stopped, quiet := stop.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case msg, ok := <-messages:
			if !ok {
				return
			}
			s.accept(msg)
			if quiet != nil {
				quiet = time.After(lull)
			}
		case <-stopped:
			stopped, quiet = nil, time.After(lull)
		case <-quiet:
			quiet = nil
			giveUp()
		}
	}
}
