package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// maxWindow bounds the sequences that are looked at together on the way back,
// and so the messages held.
const maxWindow = 4096

// Newest calls accept with what each of the consumers has settled (see
// [Past.Read]), newest first, until it returns true, and goes on with the next
// consumer; or until it returns an error, which Newest returns.
func (p *Past) Newest(ctx context.Context, accept func(in events.Raw) (enough bool, err error)) error {
	dir, err := readDirectory(ctx, p.js)
	if err != nil {
		return err
	}
	for _, name := range p.consumers {
		b, err := dir.bind(ctx, name)
		if err == nil {
			err = p.newest(ctx, b, accept)
		}
		if err != nil {
			return fmt.Errorf("pipeline: read what %s settled last: %w", name, err)
		}
	}
	return nil
}

func (p *Past) newest(ctx context.Context, b *binding, accept func(events.Raw) (bool, error)) error {
	stream, err := p.js.Stream(ctx, b.stream)
	if err != nil {
		return err
	}
	buried, err := buriedBy(ctx, p.js, b.streamID, b.name)
	if err != nil {
		return err
	}
	info := b.consumer.CachedInfo()
	for to, width := info.AckFloor.Stream, uint64(1); to > 0; width = min(8*width, maxWindow) {
		from := to - min(width, to)
		found, err := window(ctx, stream, b, info.Config.FilterSubject, from, to)
		if err != nil {
			return err
		}
		for _, in := range slices.Backward(found) {
			if buried[in.Sequence] {
				continue
			}
			if enough, err := accept(in); enough || err != nil {
				return err
			}
		}
		to = from
	}
	return nil
}

// window reads the messages of a consumer behind sequence from, up to to.
func window(ctx context.Context, stream jetstream.Stream, b *binding, filter string, from, to uint64) (found []events.Raw, err error) {
	for from < to {
		msg, err := stream.GetMsg(ctx, from+1, jetstream.WithGetMsgSubject(filter))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		if msg.Sequence > to {
			break
		}
		from = msg.Sequence
		found = append(found, events.Raw{
			Subject: msg.Subject, Header: msg.Header, Body: msg.Data,
			Stream: b.stream, StreamID: b.streamID, Sequence: msg.Sequence, Time: msg.Time.UTC(), Delivery: 1,
		})
	}
	return found, nil
}
