package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/tail"
)

// adoptLook bounds the messages that are looked at.
const adoptLook = 1000

// Adopt returns where to begin a partition that an earlier version read with a
// durable consumer of that name: behind what that one has acknowledged, if has says
// that the newest of it is stored; otherwise 0. It calls has with the newest
// messages, newest first, until one of them decides. The consumer is removed.
func (p *Replay) Adopt(ctx context.Context, part Partition, has func(*Entry) (stored, decides bool, err error)) (uint64, error) {
	stream, err := p.js.Stream(ctx, p.stream)
	if err != nil {
		return 0, fmt.Errorf("pipeline: look up stream %s: %w", p.stream, err)
	}
	consumer, err := stream.Consumer(ctx, part.Reader)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("pipeline: look up consumer %s: %w", part.Reader, err)
	}
	floor := consumer.CachedInfo().AckFloor.Stream
	stored, err := p.stored(ctx, stream, part, floor, has)
	if err != nil {
		return 0, fmt.Errorf("pipeline: compare with consumer %s: %w", part.Reader, err)
	}
	if !stored {
		floor = 0
	}
	if err := stream.DeleteConsumer(ctx, part.Reader); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return 0, fmt.Errorf("pipeline: remove consumer %s: %w", part.Reader, err)
	}
	return floor, nil
}

func (p *Replay) stored(
	ctx context.Context, stream jetstream.Stream, part Partition, floor uint64, has func(*Entry) (stored, decides bool, err error),
) (bool, error) {
	for seq := floor; seq > 0 && floor-seq < adoptLook; seq-- {
		msg, err := stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		if !strings.HasPrefix(msg.Subject, strings.TrimSuffix(part.Filter, ">")) {
			continue
		}
		e := newEntry(tail.Message{
			Subject: msg.Subject, Header: msg.Header, Data: msg.Data, Sequence: msg.Sequence, Time: msg.Time.UTC(),
		}, p.stream, identity(stream))
		if stored, decides, err := has(e); decides || err != nil {
			return stored, err
		}
	}
	return false, nil
}
