package broker

import (
	"context"
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
	end, err := j.last(ctx, allEffects)
	if err != nil || end == 0 {
		return err
	}
	r := &reader{journal: j, filter: allEffects, end: end}
	return r.follow(ctx, headsAhead, jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{allEffects},
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		HeadersOnly:       true,
		InactiveThreshold: readPatience * 30,
	}, func(msg jetstream.Msg, at *jetstream.MsgMetadata, _ jetstream.Consumer) (done bool, err error) {
		_, fact, err := events.ParseSubject(msg.Subject())
		if err != nil {
			return true, err
		}
		r.at = at.Sequence.Stream
		return false, yield(audit.Head{Scope: fact, Sequence: r.at})
	})
}

// headsAhead bounds the messages under way to a reader of heads, some hundred
// bytes each.
const headsAhead = 4096
