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
	r := &reader{journal: j, filter: allEffects}
	for again := true; again; {
		at := r.at
		var err error
		if r.end, err = j.last(ctx, allEffects); err != nil || r.end <= r.at {
			return err
		}
		if again, err = r.heads(ctx, yield); err != nil {
			return err
		}
		r.doubt(at)
	}
	return nil
}

// heads yields what stands behind r.at. Where the library replaces the consumer,
// say after a reconnect, the next one delivers every effect that is left and not
// the newest of each subject: then heads must be called again.
func (r *reader) heads(ctx context.Context, yield func(audit.Head) error) (again bool, err error) {
	from := ""
	err = r.follow(ctx, headsAhead, jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{allEffects},
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		HeadersOnly:       true,
		InactiveThreshold: readPatience * 30,
	}, func(msg jetstream.Msg, at *jetstream.MsgMetadata, _ jetstream.Consumer) (done bool, err error) {
		if from != "" && from != at.Consumer {
			again = true
			return true, nil
		}
		from = at.Consumer
		if at.Sequence.Stream <= r.at {
			return false, nil // those before were told of it
		}
		_, fact, err := events.ParseSubject(msg.Subject())
		if err != nil {
			return true, err
		}
		r.at = at.Sequence.Stream
		return false, yield(audit.Head{Scope: fact, Sequence: r.at})
	})
	if errors.Is(err, errUnserved) {
		return true, nil
	}
	return again, err
}

// headsAhead bounds the messages under way to a reader of heads, some hundred
// bytes each.
const headsAhead = 4096
