package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// PinGroup is the priority group of consumers that serve one replica at a time.
const PinGroup = "pin"

// The settings that a take-over rests on. The inequalities that checkConsumer
// holds consumers to follow from these.
const (
	// pullExpiry: only the arrival of a pull request renews a pin, so one must
	// arrive well within the pin's TTL, also when there is nothing to fetch.
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
	pinned   bool
}

// directory finds the streams that consumers belong to.
type directory map[string][]jetstream.Stream

// readDirectory lists every durable consumer the broker has.
func readDirectory(ctx context.Context, js jetstream.JetStream) (directory, error) {
	found := make(directory)
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("pipeline: look up stream %s: %w", name, err)
		}
		consumers := stream.ConsumerNames(ctx)
		for consumer := range consumers.Name() {
			found[consumer] = append(found[consumer], stream)
		}
		if err := consumers.Err(); err != nil {
			return nil, fmt.Errorf("pipeline: list consumers of %s: %w", name, err)
		}
	}
	if err := names.Err(); err != nil {
		return nil, fmt.Errorf("pipeline: list streams: %w", err)
	}
	return found, nil
}

// bind finds a durable consumer and refuses settings that the runtime cannot
// keep its promises with. It never creates one.
func (d directory) bind(ctx context.Context, name string) (*binding, error) {
	streams := d[name]
	if len(streams) != 1 {
		return nil, fmt.Errorf("pipeline: consumer %s: declared by %d streams, not by one", name, len(streams))
	}
	consumer, err := streams[0].Consumer(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("pipeline: bind %s: %w", name, err)
	}
	cfg := consumer.CachedInfo().Config
	if err := checkConsumer(cfg); err != nil {
		return nil, fmt.Errorf("pipeline: consumer %s: %w", name, err)
	}
	info := streams[0].CachedInfo()
	return &binding{
		consumer: consumer, name: name, stream: info.Config.Name,
		streamID: info.Config.Name + "@" + info.Created.UTC().Format(time.RFC3339Nano),
		pinned:   cfg.PriorityPolicy == jetstream.PriorityPolicyPinned,
	}, nil
}

// checkConsumer refuses consumer settings that break a promise:
//
//   - explicit acks, by pull;
//   - deliveries without limit: the broker forgets a message that reaches one,
//     while the runtime buries it;
//   - ack wait ≥ 2 × the in-progress interval, or what is held is redelivered;
//   - no backoff list: it would stand in for the ack wait;
//
// and of a pinned consumer, so that a take-over takes less than 5 s and a pin
// stays where it is:
//
//   - its one group is [PinGroup];
//   - pull expiry < pin TTL / 2: two pull requests arrive within the TTL;
//   - pin TTL ≤ 3 s, ack wait ≤ 4 s: what a dead replica held comes back in time;
//   - pin TTL < ack wait: the pin has moved before its messages do, or they
//     would be delivered to the dead replica again;
//   - max ack pending between 1 and 10 000: it is what bounds memory.
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
	must(c.MaxRequestBatch == 0 || c.MaxRequestBatch >= pinnedBatch, "max request batch: %d is less than %d", c.MaxRequestBatch, pinnedBatch)
	switch c.PriorityPolicy {
	case jetstream.PriorityPolicyNone:
	case jetstream.PriorityPolicyPinned:
		must(slices.Equal(c.PriorityGroups, []string{PinGroup}), "priority groups: %q are not [%q]", c.PriorityGroups, PinGroup)
		must(2*pullExpiry < c.PinnedTTL, "pin ttl: %v is not more than 2 × the pull expiry of %v", c.PinnedTTL, pullExpiry)
		must(c.PinnedTTL <= 3*time.Second, "pin ttl: %v is more than 3 s", c.PinnedTTL)
		must(c.PinnedTTL < c.AckWait, "pin ttl: %v is not less than the ack wait of %v", c.PinnedTTL, c.AckWait)
		must(c.AckWait <= 4*time.Second, "ack wait: %v is more than 4 s", c.AckWait)
		must(0 < c.MaxAckPending && c.MaxAckPending <= 10_000, "max ack pending: %d is not between 1 and 10000", c.MaxAckPending)
	default:
		must(false, "priority policy: %v is neither none nor pinned", c.PriorityPolicy)
	}
	return errors.Join(errs...)
}
