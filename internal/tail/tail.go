// Package tail reads a stream of JetStream in order and without loss.
//
// JetStream keeps no order across redelivery, so nothing that needs stream order uses
// acknowledgements. A [Reader] has its own consumer, which is never acknowledged, and
// counts the deliveries. Where a message is missing, after a lost connection, a
// restarted server or a dropped delivery, it starts again after the last message that
// it returned. It checks the stream when no message comes, because the last message
// may be the lost one.
package tail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrCut: the stream ends before the place to read from. It was lost, or restored
// from an older copy.
var ErrCut = errors.New("tail: the stream ends before the place to read from")

// Config says what a reader reads.
type Config struct {
	JS     jetstream.JetStream
	Stream string
	// Filters are subjects with wildcards; none means all.
	Filters []string
	// After is the stream sequence behind which to begin.
	After uint64
	// Ahead and AheadBytes bound what is under way to the reader. Defaults: 512
	// messages and 8 MiB, which must be more than the largest message.
	Ahead, AheadBytes int
}

// Message is one message as the stream holds it.
type Message struct {
	Subject  string
	Header   nats.Header
	Data     []byte
	Sequence uint64
	Time     time.Time
	// Pending is how many messages of the reader stood behind this one when it was
	// sent. A replica that lags may say less.
	Pending uint64
}

// Reader reads messages in stream order. It may not be used concurrently.
type Reader struct {
	cfg      Config
	at       uint64             // sequence of the last message that was returned
	consumer jetstream.Consumer // nil before the first read, and after a loss
	seen     uint64             // messages that the consumer has sent
	// The pull request under way, the messages that it brought, and what ends it.
	pulled  jetstream.MessageBatch
	got     int
	endPull context.CancelFunc
}

const (
	// pullExpiry is how long a pull request waits for a message: the longest
	// silence before the reader asks whether one was lost.
	pullExpiry = 2 * time.Second
	// pullBeat is how often the server says meanwhile that it serves the request.
	pullBeat = 800 * time.Millisecond
	// idleLimit is after how long the server removes the consumer of a reader that
	// died.
	idleLimit = 30 * time.Second
	// onTheWay is how long messages that the server is about to send are waited for.
	onTheWay = 5 * time.Millisecond
	// requestLimit bounds each request to the server.
	requestLimit = 5 * time.Second
)

// New returns a reader. It does not talk to the server.
func New(cfg Config) *Reader {
	if cfg.Ahead == 0 {
		cfg.Ahead = 512
	}
	if cfg.AheadBytes == 0 {
		cfg.AheadBytes = 8 << 20
	}
	return &Reader{cfg: cfg, at: cfg.After}
}

// At is the sequence of the last message that was returned, or where to begin.
func (r *Reader) At() uint64 { return r.at }

// Read returns the messages behind the last one that it returned, at most n, in
// stream order. It waits for the first of them as long as wait, and returns none
// if none came. After an error it may be called again, and loses nothing.
func (r *Reader) Read(ctx context.Context, n int, wait time.Duration) ([]Message, error) {
	var out []Message
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for len(out) == 0 {
		if err := r.pull(ctx); err != nil {
			return nil, r.failed(err)
		}
		select {
		case msg, ok := <-r.pulled.Messages():
			if !ok {
				if err := r.pullEnded(ctx); err != nil {
					return nil, r.failed(err)
				}
				continue
			}
			m, whole := r.next(msg)
			if !whole {
				r.drop(ctx)
				continue
			}
			out = append(out, m)
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r.more(out, n), nil
}

// more adds the messages that have arrived, and waits a moment for those that are on
// their way.
func (r *Reader) more(out []Message, n int) []Message {
	late := time.NewTimer(onTheWay)
	defer late.Stop()
	for len(out) < n {
		arrived := r.pulled.Messages()
		select {
		case msg, ok := <-arrived:
			if !r.add(&out, msg, ok) {
				return out
			}
			continue
		default:
		}
		if out[len(out)-1].Pending == 0 {
			return out
		}
		select {
		case msg, ok := <-arrived:
			if !r.add(&out, msg, ok) {
				return out
			}
		case <-late.C:
			return out
		}
	}
	return out
}

// add adds a message, and reports whether more may follow.
func (r *Reader) add(out *[]Message, msg jetstream.Msg, ok bool) bool {
	if !ok {
		return false // the next read finds out why
	}
	m, whole := r.next(msg)
	if !whole {
		r.drop(context.Background())
		return false
	}
	*out = append(*out, m)
	return true
}

// next takes one message. It is not whole if one before it is missing.
func (r *Reader) next(msg jetstream.Msg) (m Message, whole bool) {
	meta, err := msg.Metadata()
	if err != nil || meta.Sequence.Consumer != r.seen+1 {
		return Message{}, false
	}
	r.seen++
	r.got++
	r.at = meta.Sequence.Stream
	return Message{
		Subject: msg.Subject(), Header: msg.Headers(), Data: msg.Data(),
		Sequence: meta.Sequence.Stream, Time: meta.Timestamp.UTC(), Pending: meta.NumPending,
	}, true
}

// pull makes sure that a pull request is under way.
func (r *Reader) pull(ctx context.Context) error {
	if r.pulled != nil {
		return nil
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	pulling, end := context.WithTimeout(context.WithoutCancel(ctx), pullExpiry)
	pulled, err := r.consumer.Fetch(r.cfg.Ahead,
		jetstream.FetchContext(pulling), jetstream.FetchMaxBytes(r.cfg.AheadBytes), jetstream.FetchHeartbeat(pullBeat))
	if err != nil {
		end()
		return err
	}
	r.pulled, r.got, r.endPull = pulled, 0, end
	return nil
}

// pullEnded follows the end of a pull request. One that brought nothing may have
// lost what it brought: then the consumer has sent more than was seen.
func (r *Reader) pullEnded(ctx context.Context) error {
	pulled, got := r.pulled, r.got
	r.endPull()
	r.pulled = nil
	switch err := pulled.Error(); {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, jetstream.ErrBatchCompleted):
	case err != nil:
		return err
	}
	if got > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return err
	}
	if info.Delivered.Consumer != r.seen {
		r.drop(ctx)
	}
	return nil
}

// open makes the consumer where there is none. The server would wait without end
// for a sequence behind the end of a stream that was lost, so that is refused.
func (r *Reader) open(ctx context.Context) error {
	if r.consumer != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	stream, err := r.cfg.JS.Stream(ctx, r.cfg.Stream)
	if err != nil {
		return err
	}
	if last := stream.CachedInfo().State.LastSeq; last < r.at {
		return fmt.Errorf("%w: %s ends at %d, before %d", ErrCut, r.cfg.Stream, last, r.at)
	}
	r.consumer, err = r.cfg.JS.CreateConsumer(ctx, r.cfg.Stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.at + 1, FilterSubjects: r.cfg.Filters,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: idleLimit,
	})
	r.seen = 0
	return err
}

// failed has the next read begin with another consumer.
func (r *Reader) failed(err error) error {
	r.drop(context.Background())
	return fmt.Errorf("tail: read %s after %d: %w", r.cfg.Stream, r.at, err)
}

// drop forgets the consumer. The next one sends again all that it was to send.
func (r *Reader) drop(ctx context.Context) {
	consumer := r.consumer
	if r.pulled != nil {
		r.endPull()
	}
	r.consumer, r.pulled = nil, nil
	if consumer == nil {
		return
	}
	info := consumer.CachedInfo()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.cfg.JS.DeleteConsumer(ctx, r.cfg.Stream, info.Name) // else the server finds it idle
}

// Close removes the consumer.
func (r *Reader) Close() { r.drop(context.Background()) }
