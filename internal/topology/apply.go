package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Apply creates and updates streams and consumers until the broker has what is
// declared. It touches only what differs, and may run in several processes at
// once. It deletes nothing but streams of an earlier version that are not used any
// more. What JetStream cannot change in place, and faults that remain, are
// errors that name the stream and consumer.
func Apply(ctx context.Context, js jetstream.JetStream, decl Declaration) error {
	if err := decl.Validate(); err != nil {
		return err
	}
	for _, want := range decl.Streams {
		if err := applyStream(ctx, js, want); err != nil {
			return err
		}
	}
	if err := removeRetired(ctx, js); err != nil {
		return err
	}
	return Check(ctx, js, decl)
}

// Ensure creates the declared streams and consumers that are missing and leaves
// those that are there as they are: that they differ in what services can live
// with is an operator's choice, and the rest wants [Apply], by hand. It may run
// in several processes at once. The error wraps [ErrIncompatible] where what is there
// cannot be used.
func Ensure(ctx context.Context, js jetstream.JetStream, decl Declaration) error {
	if err := decl.Validate(); err != nil {
		return err
	}
	for _, want := range decl.Streams {
		if err := ensureStream(ctx, js, want); err != nil {
			return err
		}
	}
	return Check(ctx, js, decl)
}

// ensureStream creates a missing stream. Another process may create it at the same
// time; Check compares the result with the wanted configuration.
func ensureStream(ctx context.Context, js jetstream.JetStream, want Stream) error {
	name := want.Config.Name
	have, err := inspect(ctx, js, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, want.Config)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("create stream %s: %w", name, err)
	}
	for _, c := range want.Consumers {
		if slices.ContainsFunc(have.Consumers, func(h jetstream.ConsumerConfig) bool { return h.Durable == c.Durable }) {
			continue
		}
		if _, err := js.CreateConsumer(ctx, name, c); err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
			return fmt.Errorf("create consumer %s of stream %s: %w", c.Durable, name, err)
		}
	}
	return nil
}

// Validate refuses a declaration that has [Stream.Faults] of its own.
func (d Declaration) Validate() error {
	var all []error
	for _, s := range d.Streams {
		for _, fault := range s.Faults() {
			all = append(all, fmt.Errorf("%w: declared %s", ErrIncompatible, fault))
		}
	}
	return errors.Join(all...)
}

func applyStream(ctx context.Context, js jetstream.JetStream, want Stream) error {
	name := want.Config.Name
	have, err := inspect(ctx, js, name)
	exists := !errors.Is(err, jetstream.ErrStreamNotFound)
	if exists && err != nil {
		return fmt.Errorf("inspect stream %s: %w", name, err)
	}
	if !exists || len(compare(Difference{}, streamFacets, want.Config, have.Config)) > 0 {
		if _, err := js.CreateOrUpdateStream(ctx, want.Config); err != nil {
			return fmt.Errorf("apply stream %s: %w", name, err)
		}
	}
	for _, c := range want.Consumers {
		i := slices.IndexFunc(have.Consumers, func(h jetstream.ConsumerConfig) bool { return h.Durable == c.Durable })
		if i >= 0 && len(compare(Difference{}, consumerFacets, c, have.Consumers[i])) == 0 {
			continue
		}
		if _, err := js.CreateOrUpdateConsumer(ctx, name, c); err != nil {
			return fmt.Errorf("apply consumer %s of stream %s: %w", c.Durable, name, err)
		}
	}
	return nil
}

// removeRetired deletes the [retired] streams. A stream of another owner may have
// the name of one; its subjects differ.
func removeRetired(ctx context.Context, js jetstream.JetStream) error {
	for name, subject := range retired {
		have, err := js.Stream(ctx, name)
		if err == nil && slices.Equal(have.CachedInfo().Config.Subjects, []string{subject}) {
			err = js.DeleteStream(ctx, name)
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("remove stream %s: %w", name, err)
		}
	}
	return nil
}
