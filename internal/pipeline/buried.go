package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// BuriedStream holds a mark for each message that a pinned consumer buried and
// that another attempt might have taken. Its stream keeps the message, so whoever
// reads that again ([Past]) must know that it was never taken; a letter says so
// too, but ends.
const BuriedStream = "BURIED"

// fickle are the codes of verdicts that another attempt, version or
// configuration may not come to. What is refused for any other reason is refused
// again.
var fickle = []string{events.CodePoison, events.CodeUnknownKind, events.CodeTooLarge}

// markBuried is called behind the letter, and before the message is ended: from
// here on nobody handles it.
func (k *keeper) markBuried(ctx context.Context, c conclusion) error {
	if !k.binding.pinned || !slices.Contains(fickle, c.verdict.code) {
		return nil
	}
	_, err := k.rt.broker.send(ctx, outgoing{msg: &nats.Msg{Subject: k.buriedSubject(c.raw.Sequence)}})
	return err
}

// marks are those of one consumer, as they were a moment ago: whoever takes over
// asks about all that the last replica held.
type marks struct {
	mu    sync.Mutex
	known map[uint64]bool
	asked time.Time
}

// marksFor is how long marks are trusted. What is marked and not ended comes again
// when its ack wait ends, and that is longer.
const marksFor = time.Second

// wasBuried reports whether the process that marked a message died before it
// ended it. Handled now, it would be taken, and missing wherever its stream is
// read again.
func (k *keeper) wasBuried(ctx context.Context, sequence uint64, deliveries int) (bool, error) {
	if !k.binding.pinned || deliveries <= 1 {
		return false, nil
	}
	k.marks.mu.Lock()
	defer k.marks.mu.Unlock()
	if began := time.Now(); began.Sub(k.marks.asked) > marksFor {
		ctx, cancel := context.WithTimeout(ctx, k.rt.cfg.PublishTimeout)
		defer cancel()
		known, err := buriedBy(ctx, k.rt.js, k.binding.streamID, k.binding.name)
		if err != nil {
			return false, err
		}
		k.marks.known, k.marks.asked = known, began
	}
	return k.marks.known[sequence], nil
}

func (k *keeper) buriedSubject(sequence uint64) string {
	return events.BuriedSubject(k.binding.name, k.binding.streamID, sequence)
}

// buriedBy are the sequences that consumers of one stream have marked.
func buriedBy(ctx context.Context, js jetstream.JetStream, streamID string, consumers ...string) (map[uint64]bool, error) {
	found := make(map[uint64]bool)
	for _, name := range consumers {
		prefix := strings.TrimSuffix(events.BuriedSubject(name, streamID, 0), "0")
		marks, err := marksOf(ctx, js, prefix+"*")
		if err != nil {
			return nil, err
		}
		for subject := range marks {
			sequence, err := strconv.ParseUint(strings.TrimPrefix(subject, prefix), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("pipeline: read mark %s: %w", subject, err)
			}
			found[sequence] = true
		}
	}
	return found, nil
}

// marksOf counts the marks by subject. A broker without the stream has none.
func marksOf(ctx context.Context, js jetstream.JetStream, filter string) (map[string]uint64, error) {
	stream, err := js.Stream(ctx, BuriedStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("pipeline: look for what was buried: %w", err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("pipeline: look for what was buried: %w", err)
	}
	return info.State.Subjects, nil
}
