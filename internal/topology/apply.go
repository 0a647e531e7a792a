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
	if err := settle(ctx, js, decl, true); err != nil {
		return err
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
	if err := settle(ctx, js, decl, false); err != nil {
		return err
	}
	return Check(ctx, js, decl)
}

// settle creates what is missing and, where change is set, updates what differs.
func settle(ctx context.Context, js jetstream.JetStream, decl Declaration, change bool) error {
	if err := decl.Validate(); err != nil {
		return err
	}
	for _, want := range decl.Streams {
		if err := settleStream(ctx, js, want, change); err != nil {
			return err
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

// settleStream does so with one. Another process may create the same at the same time;
// Check compares the result with the wanted configuration.
func settleStream(ctx context.Context, js jetstream.JetStream, want Stream, change bool) error {
	name := want.Config.Name
	have, err := inspect(ctx, js, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		if _, err = js.CreateStream(ctx, want.Config); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			err = nil
		}
	case err == nil && change && len(compare(Difference{}, streamFacets, want.Config, have.Config)) > 0:
		_, err = js.CreateOrUpdateStream(ctx, want.Config)
	}
	if err != nil {
		return fmt.Errorf("apply stream %s: %w", name, err)
	}
	for _, c := range want.Consumers {
		i := slices.IndexFunc(have.Consumers, func(h jetstream.ConsumerConfig) bool { return h.Durable == c.Durable })
		switch {
		case i < 0:
			if _, err = js.CreateConsumer(ctx, name, c); errors.Is(err, jetstream.ErrConsumerExists) {
				err = nil
			}
		case change && len(compare(Difference{}, consumerFacets, c, have.Consumers[i])) > 0:
			_, err = js.CreateOrUpdateConsumer(ctx, name, c)
		}
		if err != nil {
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
