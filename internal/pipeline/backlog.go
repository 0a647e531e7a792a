package pipeline

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Backlog is what one durable consumer, or this process's readers of one log, have
// before them, in messages.
type Backlog struct {
	Stream, Consumer string
	// Pending were not handed out yet; Unacked were, to any replica, and are not
	// answered.
	Pending, Unacked uint64
}

// StreamSize is how much a stream holds.
type StreamSize struct {
	Stream          string
	Messages, Bytes uint64
}

// backlogAtOnce bounds the questions under way to the broker.
const backlogAtOnce = 8

// Backlog asks the broker for that of each consumer which the runtime reads. There
// are none before it runs.
func (rt *Runtime) Backlog(ctx context.Context) ([]Backlog, error) {
	rt.mu.Lock()
	bindings, logs := slices.Clone(rt.bindings), slices.Clone(rt.logs)
	rt.mu.Unlock()
	out := make([]Backlog, len(bindings))
	asking, within := errgroup.WithContext(ctx)
	asking.SetLimit(backlogAtOnce)
	for i, b := range bindings {
		asking.Go(func() error {
			info, err := b.consumer.Info(within)
			if err != nil {
				return fmt.Errorf("pipeline: ask for the backlog of %s: %w", b.name, err)
			}
			out[i] = Backlog{
				Stream: b.stream, Consumer: b.name, Pending: info.NumPending, Unacked: uint64(max(info.NumAckPending, 0)),
			}
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		return nil, err
	}
	for _, g := range logs {
		out = append(out, g.backlog())
	}
	return out, nil
}

// Acknowledged is the stream sequence up to which all that a consumer is to read
// was handled, by any replica, or dropped by the stream. The runtime must read it.
func (rt *Runtime) Acknowledged(ctx context.Context, consumer string) (uint64, error) {
	rt.mu.Lock()
	at := slices.IndexFunc(rt.bindings, func(b *binding) bool { return b.name == consumer })
	if at < 0 {
		rt.mu.Unlock()
		return 0, fmt.Errorf("pipeline: nobody reads consumer %s", consumer)
	}
	b := rt.bindings[at]
	rt.mu.Unlock()
	info, err := b.consumer.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("pipeline: ask what of %s is acknowledged: %w", consumer, err)
	}
	return info.AckFloor.Stream, nil
}

// Streams asks the broker for the size of each stream.
func (rt *Runtime) Streams(ctx context.Context) ([]StreamSize, error) {
	var out []StreamSize
	streams := rt.js.ListStreams(ctx)
	for info := range streams.Info() {
		out = append(out, StreamSize{Stream: info.Config.Name, Messages: info.State.Msgs, Bytes: info.State.Bytes})
	}
	if err := streams.Err(); err != nil {
		return nil, fmt.Errorf("pipeline: ask for the sizes of streams: %w", err)
	}
	return out, nil
}
