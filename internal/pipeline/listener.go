package pipeline

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"palimpsest/pkg/events"
)

// outcomeBuffer is how many outcomes may wait for a listener that is slow; what
// comes on top is dropped, for the store has it.
const outcomeBuffer = 16

// Listen implements [Listener].
func (b *broker) Listen(ctx context.Context, correlationID string) (<-chan events.Outcome, func(), error) {
	outcomes := make(chan events.Outcome, outcomeBuffer)
	sub, err := b.conn.Subscribe(events.OutcomeSubject(correlationID), func(msg *nats.Msg) {
		meta, data, err := events.Decode(events.Raw{Subject: msg.Subject, Header: msg.Header, Body: msg.Data, Time: b.now()})
		if err != nil {
			return
		}
		in, err := events.DecodeData[events.OutcomeAnnounced](meta, data)
		if err != nil {
			return
		}
		select {
		case outcomes <- in.Data.Outcome:
		default:
		}
	})
	if err != nil {
		return nil, nil, fmt.Errorf("pipeline: listen: %w", err)
	}
	var once sync.Once
	stop := func() {
		once.Do(func() { _ = sub.Unsubscribe() }) // fails only where the connection is gone
	}
	// The server must know of the subscription before the caller publishes.
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	if err := b.conn.FlushWithContext(ctx); err != nil {
		stop()
		return nil, nil, fmt.Errorf("pipeline: listen: %w", err)
	}
	return outcomes, stop, nil
}
