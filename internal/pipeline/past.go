package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// Past reads again what consumers of one stream were handed, without what they
// buried though it might have passed ([BuriedStream]). It acknowledges nothing and
// leaves the consumers as they are.
type Past struct {
	js        jetstream.JetStream
	consumers []string
}

// NewPast returns the past of durable consumers of one stream, each of which
// filters one subject.
func NewPast(js jetstream.JetStream, consumers ...string) *Past {
	return &Past{js: js, consumers: consumers}
}

// Read calls yield with the messages behind sequence after that any of the
// consumers was handed, as it was, in stream order, until yield returns an
// error, which it returns. settled says that the consumer has acknowledged it and
// all before it, so that it is not handed out again. What is yet to be handed out
// is left out.
func (p *Past) Read(ctx context.Context, after uint64, yield func(in events.Raw, settled bool) error) error {
	if err := p.read(ctx, after, yield); err != nil {
		return fmt.Errorf("pipeline: read what was handed out behind %d: %w", after, err)
	}
	return nil
}

// Begin is the lowest sequence that the stream may hold: what stood below it
// was dropped because of its age or the stream's size. It is 1 or less where
// nothing was.
func (p *Past) Begin(ctx context.Context) (uint64, error) {
	dir, err := readDirectory(ctx, p.js)
	if err != nil {
		return 0, err
	}
	b, err := dir.bind(ctx, p.consumers[0])
	if err != nil {
		return 0, err
	}
	stream, err := p.js.Stream(ctx, b.stream)
	if err != nil {
		return 0, fmt.Errorf("pipeline: look up stream %s: %w", b.stream, err)
	}
	return stream.CachedInfo().State.FirstSeq, nil
}

const (
	// pastAhead bounds the messages under way.
	pastAhead = 64
	// pastPatience is how long the next message is waited for before what there
	// is to read is looked at again.
	pastPatience = 2 * time.Second
	// maxPastPatience bounds how long a reader may be silent though there is more,
	// before the next one is tried: twice as long as the one before.
	maxPastPatience = time.Minute
	// pastBeat is how often the broker says meanwhile that it serves the reader;
	// twice that is less than pastPatience, or a lost request is never asked anew.
	pastBeat = 900 * time.Millisecond
)

// handed is how far a consumer was served.
type handed struct {
	prefix      string // of the subjects that it reads
	upTo, floor uint64
}

// extent is how far each consumer was served, and the farthest of that.
func (p *Past) extent(ctx context.Context) (b *binding, readers []handed, end uint64, err error) {
	dir, err := readDirectory(ctx, p.js)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, name := range p.consumers {
		if b, err = dir.bind(ctx, name); err != nil {
			return nil, nil, 0, err
		}
		info := b.consumer.CachedInfo()
		readers = append(readers, handed{
			prefix: strings.TrimSuffix(info.Config.FilterSubject, ">"), upTo: info.Delivered.Stream, floor: info.AckFloor.Stream,
		})
		end = max(end, info.Delivered.Stream)
	}
	return b, readers, end, nil
}

func (p *Past) read(ctx context.Context, after uint64, yield func(events.Raw, bool) error) error {
	b, readers, end, err := p.extent(ctx)
	if err != nil || end <= after {
		return err
	}
	buried, err := buriedBy(ctx, p.js, b.streamID, p.consumers...)
	if err != nil {
		return err
	}
	return p.follow(ctx, b, after, end, func(in events.Raw) error {
		for _, r := range readers {
			if in.Sequence <= r.upTo && !buried[in.Sequence] && strings.HasPrefix(in.Subject, r.prefix) {
				return yield(in, in.Sequence <= r.floor)
			}
		}
		return nil
	})
}

// errUnserved: there is more to read, and the reader's consumer sends none of it. The
// library drops what finds its buffer full, and misses it with the next message: the
// last one would be waited for without end.
var errUnserved = errors.New("the consumer sends nothing of what is there")

// follow calls yield with each message behind sequence at, up to end, through another
// consumer where one has come to nothing.
func (p *Past) follow(ctx context.Context, b *binding, at, end uint64, yield func(events.Raw) error) error {
	stream, err := p.js.Stream(ctx, b.stream)
	if err != nil {
		return fmt.Errorf("look up stream %s: %w", b.stream, err)
	}
	for patience := pastPatience; ; {
		begun := at
		if at, err = p.consume(ctx, b, stream, at, end, patience, yield); !errors.Is(err, errUnserved) {
			return err
		}
		patience = min(2*patience, maxPastPatience) // on a busy server the first message may take its time
		if at != begun {
			patience = pastPatience
		}
	}
}

// consume does so through one consumer, and returns how far it came.
func (p *Past) consume(
	ctx context.Context, b *binding, stream jetstream.Stream, at, end uint64, patience time.Duration, yield func(events.Raw) error,
) (uint64, error) {
	consumer, err := p.js.OrderedConsumer(ctx, b.stream, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: at + 1,
	})
	if err != nil {
		return at, err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(pastAhead), jetstream.PullHeartbeat(pastBeat))
	if err != nil {
		return at, err
	}
	defer p.dismiss(ctx, b.stream, consumer, messages)
	for at < end {
		msg, err := p.next(ctx, stream, at, end, patience, messages)
		if msg == nil || err != nil {
			return at, err
		}
		in, err := raw(msg, b.streamID)
		if err != nil || in.Sequence > end {
			return at, err
		}
		if err := yield(in); err != nil {
			return at, err
		}
		at = in.Sequence
		meta, err := msg.Metadata()
		if err != nil {
			return at, err
		}
		if meta.NumPending == 0 && at < end {
			if more, err := left(ctx, stream, at, end); err != nil || !more {
				return at, err
			}
		}
	}
	return at, nil
}

// next waits for a message; nil where none is left.
func (p *Past) next(
	ctx context.Context, stream jetstream.Stream, at, end uint64, patience time.Duration, messages jetstream.MessagesContext,
) (jetstream.Msg, error) {
	for silence := pastPatience; ; silence += pastPatience {
		wait, cancel := context.WithTimeout(ctx, pastPatience)
		msg, err := messages.Next(jetstream.NextContext(wait))
		cancel()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return msg, err
		}
		if more, err := left(ctx, stream, at, end); err != nil || !more {
			return nil, err
		}
		if silence >= patience {
			return nil, errUnserved
		}
	}
}

// left asks the stream's leader whether it has a message behind sequence at, up to
// end. The replica that serves a reader may lag behind it, and then says that
// nothing pends.
func left(ctx context.Context, stream jetstream.Stream, at, end uint64) (bool, error) {
	msg, err := stream.GetMsg(ctx, at+1, jetstream.WithGetMsgSubject(">"))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil && msg.Sequence <= end, err
}

// dismiss ends the reader now, not when the server finds it abandoned.
func (p *Past) dismiss(ctx context.Context, stream string, consumer jetstream.Consumer, messages jetstream.MessagesContext) {
	messages.Stop()
	info := consumer.CachedInfo()
	if info == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	_ = p.js.DeleteConsumer(ctx, stream, info.Name)
}
