package pipeline

import (
	"context"

	"palimpsest/pkg/events"
)

// Publisher publishes messages without a cause in a stream: those of API callers.
type Publisher interface {
	// Publish returns once the stream holds the message, with its sequence there: that of
	// the first one where the stream knows the id. Meta's ID, Source, Time
	// and CorrelationID are sent as given (an empty ID becomes a random one, a
	// zero Time the clock's); its Kind and Scope are the payload's. An episode is
	// refused with [ErrBacklog] while too many wait to be stored.
	Publish(ctx context.Context, meta events.Meta, p events.Payload) (sequence uint64, err error)
}

// Listener delivers the outcomes of requests to waiting callers.
type Listener interface {
	// Listen delivers outcomes of a correlation id announced from now on, until
	// stop is called. Delivery is best effort: look in the store as well.
	Listen(ctx context.Context, correlationID string) (outcomes <-chan events.Outcome, stop func(), err error)
}
