package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// pullExpiry is how long a pull request waits for messages.
	pullExpiry = time.Second
	// beatInterval: how often everything that is held is reported in progress.
	beatInterval = time.Second
)

// binding is a durable consumer that exists.
type binding struct {
	consumer jetstream.Consumer
	stream   string
	streamID string
	name     string
	queue    bool // of the stream: it holds what is yet to be done
}

// bind finds a durable consumer and refuses settings that the runtime cannot
// keep its promises with. It never creates one.
func bind(ctx context.Context, js jetstream.JetStream, from, name string) (*binding, error) {
	stream, err := js.Stream(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("pipeline: look up stream %s: %w", from, err)
	}
	consumer, err := stream.Consumer(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("pipeline: look up consumer %s of %s: %w", name, from, err)
	}
	if err := checkConsumer(consumer.CachedInfo().Config); err != nil {
		return nil, fmt.Errorf("pipeline: consumer %s: %w", name, err)
	}
	queue := stream.CachedInfo().Config.Retention == jetstream.WorkQueuePolicy
	return &binding{consumer: consumer, name: name, stream: from, streamID: identity(stream), queue: queue}, nil
}

// checkConsumer refuses consumer settings that break a promise:
//
//   - explicit acks, by pull;
//   - deliveries without limit: the broker forgets a message that reaches one,
//     while the runtime buries it;
//   - ack wait ≥ 2 × the in-progress interval, or held messages are redelivered;
//   - no backoff list: it would replace the ack wait;
//   - no priority group: all replicas are served.
func checkConsumer(c jetstream.ConsumerConfig) error {
	var errs []error
	must := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	must(c.Durable != "", "is not durable")
	must(c.DeliverSubject == "", "is a push consumer")
	must(c.AckPolicy == jetstream.AckExplicitPolicy, "ack policy: %v is not explicit", c.AckPolicy)
	must(c.MaxDeliver <= 0, "max deliver: %d is a limit, and the message would be lost to view", c.MaxDeliver)
	must(c.AckWait >= 2*beatInterval, "ack wait: %v is less than 2 × %v", c.AckWait, beatInterval)
	must(len(c.BackOff) == 0, "backoff: is set, and would stand in for the ack wait")
	must(c.PriorityPolicy == jetstream.PriorityPolicyNone, "priority policy: %v is not none", c.PriorityPolicy)
	return errors.Join(errs...)
}
