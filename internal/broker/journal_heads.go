package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/pkg/events"
)

// Heads implements [audit.Heads]: headers alone of the last message of each
// subject travel, so that a start asks for much less than AUDIT holds.
func (j *Journal) Heads(ctx context.Context, yield func(audit.Head) error) error {
	if err := j.heads(ctx, yield); err != nil {
		return fmt.Errorf("read the journal's heads: %w", err)
	}
	return nil
}

func (j *Journal) heads(ctx context.Context, yield func(audit.Head) error) error {
	filter := "palimpsest." + events.NounAudit + ".>"
	end, err := j.last(ctx, filter)
	if err != nil || end == 0 {
		return err
	}
	consumer, err := j.js.OrderedConsumer(ctx, StreamAudit, jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{filter},
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		HeadersOnly:       true,
		InactiveThreshold: readPatience * 30,
	})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(headsAhead))
	if err != nil {
		return err
	}
	r := &reader{journal: j, filter: filter, end: end}
	defer r.dismiss(ctx, consumer, messages)
	for r.at < r.end {
		msg, err := await(ctx, messages)
		if errors.Is(err, context.DeadlineExceeded) {
			if err := r.reconsider(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		at, err := msg.Metadata()
		if err != nil {
			return err
		}
		_, fact, err := events.ParseSubject(msg.Subject())
		if err != nil {
			return err
		}
		r.at = at.Sequence.Stream
		if err := yield(audit.Head{Scope: fact, Sequence: r.at}); err != nil {
			return err
		}
		if at.NumPending == 0 {
			return nil
		}
	}
	return nil
}

// headsAhead bounds the messages under way to a reader of heads, some hundred
// bytes each.
const headsAhead = 4096
