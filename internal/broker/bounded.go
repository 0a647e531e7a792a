package broker

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// RequestLimit bounds one request to JetStream. A server that dies before it
// answers leaves the request without an answer for ever, and the library applies
// a limit of its own only where the context has no deadline.
const RequestLimit = 5 * time.Second

// NewJetStream returns the API on a connection with every request bounded by
// [RequestLimit], that of the context where it ends earlier. The streams and
// consumers that it returns bound theirs too. A message that is published without
// waiting fails within [publishWait]. Fetches and readers end by themselves.
func NewJetStream(conn *nats.Conn, opts ...jetstream.JetStreamOpt) (jetstream.JetStream, error) {
	js, err := jetstream.New(conn, append([]jetstream.JetStreamOpt{jetstream.WithPublishAsyncTimeout(publishWait)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &boundedAPI{js, limit(RequestLimit)}, nil
}

// limit is how long one request may take.
type limit time.Duration

func (l limit) of(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(l))
}

// listing bounds a list, whose pages are asked for after the call returned.
func (l limit) listing(ctx context.Context) context.Context {
	ctx, cancel := l.of(ctx)
	context.AfterFunc(ctx, cancel)
	return ctx
}

func (l limit) stream(s jetstream.Stream, err error) (jetstream.Stream, error) {
	if err != nil {
		return nil, err
	}
	return &boundedStream{s, l}, nil
}

func (l limit) consumer(c jetstream.Consumer, err error) (jetstream.Consumer, error) {
	if err != nil {
		return nil, err
	}
	return &boundedConsumer{c, l}, nil
}

// boundedAPI bounds what Palimpsest asks of JetStream; TestOnlyBoundedCalls
// refuses calls of the rest.
type boundedAPI struct {
	jetstream.JetStream
	limit limit
}

// Publish implements [jetstream.Publisher].
func (b *boundedAPI) Publish(ctx context.Context, subject string, body []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.JetStream.Publish(ctx, subject, body, opts...)
}

// PublishMsg implements [jetstream.Publisher].
func (b *boundedAPI) PublishMsg(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.JetStream.PublishMsg(ctx, msg, opts...)
}

// CreateStream implements [jetstream.StreamManager].
func (b *boundedAPI) CreateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.limit.stream(b.JetStream.CreateStream(ctx, cfg))
}

// CreateOrUpdateStream implements [jetstream.StreamManager].
func (b *boundedAPI) CreateOrUpdateStream(ctx context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.limit.stream(b.JetStream.CreateOrUpdateStream(ctx, cfg))
}

// Stream implements [jetstream.StreamManager].
func (b *boundedAPI) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.limit.stream(b.JetStream.Stream(ctx, name))
}

// DeleteStream implements [jetstream.StreamManager].
func (b *boundedAPI) DeleteStream(ctx context.Context, name string) error {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.JetStream.DeleteStream(ctx, name)
}

// ListStreams implements [jetstream.StreamManager].
func (b *boundedAPI) ListStreams(ctx context.Context, opts ...jetstream.StreamListOpt) jetstream.StreamInfoLister {
	return b.JetStream.ListStreams(b.limit.listing(ctx), opts...)
}

// StreamNames implements [jetstream.StreamManager].
func (b *boundedAPI) StreamNames(ctx context.Context, opts ...jetstream.StreamListOpt) jetstream.StreamNameLister {
	return b.JetStream.StreamNames(b.limit.listing(ctx), opts...)
}

// CreateConsumer implements [jetstream.StreamConsumerManager].
func (b *boundedAPI) CreateConsumer(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.limit.consumer(b.JetStream.CreateConsumer(ctx, stream, cfg))
}

// CreateOrUpdateConsumer implements [jetstream.StreamConsumerManager].
func (b *boundedAPI) CreateOrUpdateConsumer(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.limit.consumer(b.JetStream.CreateOrUpdateConsumer(ctx, stream, cfg))
}

// Consumer implements [jetstream.StreamConsumerManager].
func (b *boundedAPI) Consumer(ctx context.Context, stream, name string) (jetstream.Consumer, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.limit.consumer(b.JetStream.Consumer(ctx, stream, name))
}

// DeleteConsumer implements [jetstream.StreamConsumerManager].
func (b *boundedAPI) DeleteConsumer(ctx context.Context, stream, name string) error {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.JetStream.DeleteConsumer(ctx, stream, name)
}

// boundedStream is a stream of a [boundedAPI].
type boundedStream struct {
	jetstream.Stream
	limit limit
}

// Info implements [jetstream.Stream].
func (b *boundedStream) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.Stream.Info(ctx, opts...)
}

// Purge implements [jetstream.Stream].
func (b *boundedStream) Purge(ctx context.Context, opts ...jetstream.StreamPurgeOpt) error {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.Stream.Purge(ctx, opts...)
}

// GetMsg implements [jetstream.Stream].
func (b *boundedStream) GetMsg(ctx context.Context, seq uint64, opts ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.Stream.GetMsg(ctx, seq, opts...)
}

// GetLastMsgForSubject implements [jetstream.Stream].
func (b *boundedStream) GetLastMsgForSubject(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.Stream.GetLastMsgForSubject(ctx, subject)
}

// SecureDeleteMsg implements [jetstream.Stream].
func (b *boundedStream) SecureDeleteMsg(ctx context.Context, seq uint64) error {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.Stream.SecureDeleteMsg(ctx, seq)
}

// Consumer implements [jetstream.ConsumerManager].
func (b *boundedStream) Consumer(ctx context.Context, name string) (jetstream.Consumer, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.limit.consumer(b.Stream.Consumer(ctx, name))
}

// DeleteConsumer implements [jetstream.ConsumerManager].
func (b *boundedStream) DeleteConsumer(ctx context.Context, name string) error {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.Stream.DeleteConsumer(ctx, name)
}

// ListConsumers implements [jetstream.ConsumerManager].
func (b *boundedStream) ListConsumers(ctx context.Context) jetstream.ConsumerInfoLister {
	return b.Stream.ListConsumers(b.limit.listing(ctx))
}

// ConsumerNames implements [jetstream.ConsumerManager].
func (b *boundedStream) ConsumerNames(ctx context.Context) jetstream.ConsumerNameLister {
	return b.Stream.ConsumerNames(b.limit.listing(ctx))
}

// boundedConsumer is a consumer of a [boundedAPI]. Its readers need no bound:
// a fetch has an expiry, and [jetstream.MessagesContext] a heartbeat.
type boundedConsumer struct {
	jetstream.Consumer
	limit limit
}

// Info implements [jetstream.Consumer].
func (b *boundedConsumer) Info(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := b.limit.of(ctx)
	defer cancel()
	return b.Consumer.Info(ctx)
}
