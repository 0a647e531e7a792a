package pipeline

import (
	"context"
	"fmt"
)

// StreamSize is how much a stream holds.
type StreamSize struct {
	Stream          string
	Messages, Bytes uint64
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
