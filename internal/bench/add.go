package bench

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/client"
)

// The clients of measureAdd, each with one request under way and with a connection
// of its own.
const addClients = 8

// The targets of adds over HTTP: the part of the rate of publishing, and how many
// times the median the 95th percentile of the latency may be.
const (
	addTarget     = 0.6
	addTailTarget = 5
)

// measureAdd compares adds over HTTP with publishing over NATS, of as many clients
// that each wait for the answer before they send the next message. The pipeline
// processes the messages meanwhile.
func measureAdd(ctx context.Context, b *bench) ([]Figure, error) {
	messages := flood(b.adds)
	// tails have the 95th percentile over the median of one side.
	var rates, medians, tailsHTTP, tailsNATS pair
	first := flood(floodScopes)
	side := func(connect func(*peer) (adder, error), rate, p50 *[]float64, tail *pair) func(context.Context) error {
		return func(ctx context.Context) error {
			return b.with(ctx, PeerWhole, func(p *peer) error {
				if _, err := p.publish(ctx, anonymous, first, (*publisher).windowed); err != nil {
					return err
				}
				latencies, took, err := addAll(ctx, messages, func() (adder, error) { return connect(p) })
				if err != nil {
					return err
				}
				middle := percentile(latencies, 50)
				*rate = append(*rate, float64(len(messages))/took.Seconds())
				*p50 = append(*p50, middle)
				tail.ours = append(tail.ours, percentile(latencies, 95))
				tail.limit = append(tail.limit, middle)
				return nil
			})
		}
	}
	err := b.rounds(ctx,
		side((*peer).adder, &rates.ours, &medians.ours, &tailsHTTP),
		side((*peer).waitingPublisher, &rates.limit, &medians.limit, &tailsNATS))
	if err != nil {
		return nil, err
	}
	return []Figure{
		rates.over("add.http", unitMessages, Higher, addTarget),
		medians.over("add.http.p50", unitMillis, Lower, 0),
		tailsHTTP.over("add.http.p95.of-p50", unitMillis, Lower, addTailTarget),
		tailsNATS.over("add.nats.p95.of-p50", unitMillis, Lower, 0),
	}, nil
}

// adder adds one message and returns once it is acknowledged.
type adder struct {
	add   func(context.Context, message) error
	close func()
}

// addAll has each client add its part of the messages. It returns the ascending
// latencies in milliseconds and how long all of it took.
func addAll(ctx context.Context, messages []message, connect func() (adder, error)) ([]float64, time.Duration, error) {
	var clients [addClients]adder
	for i := range clients {
		var err error
		if clients[i], err = connect(); err != nil {
			return nil, 0, err
		}
		defer clients[i].close()
	}
	latencies := make([]float64, len(messages))
	failed := make([]error, addClients)
	var wg sync.WaitGroup
	began := time.Now()
	for c, client := range clients {
		wg.Go(func() {
			for i := c; i < len(messages) && failed[c] == nil; i += addClients {
				sent := time.Now()
				failed[c] = client.add(ctx, messages[i])
				latencies[i] = float64(time.Since(sent).Microseconds()) / 1000
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	slices.Sort(latencies)
	return latencies, took, errors.Join(failed...)
}

// adder is a client of POST /v1/episodes.
func (p *peer) adder() (adder, error) {
	transport := &http.Transport{}
	c, err := client.New(p.HTTP, client.HTTP(&http.Client{Transport: transport}))
	if err != nil {
		return adder{}, err
	}
	return adder{close: transport.CloseIdleConnections, add: func(ctx context.Context, m message) error {
		_, err := c.Record(ctx, m.record, "")
		return err
	}}, nil
}

// waitingPublisher is a client that publishes and waits for the acknowledgement.
func (p *peer) waitingPublisher() (adder, error) {
	conn, err := p.connect(anonymous)
	if err != nil {
		return adder{}, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return adder{}, err
	}
	return adder{close: conn.Close, add: func(ctx context.Context, m message) error {
		_, err := js.Publish(ctx, m.subject, m.body)
		return err
	}}, nil
}
