package pipeline

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// delivery is one message that a stage holds. The dispatcher's lock guards the fields
// below msg.
type delivery struct {
	key     string // messages of one key keep their order
	project string
	seq     uint64 // in the stream

	msg        jetstream.Msg // newest delivery: its reply subject is the one to ack
	deliveries int
	retries    int // in place
	// strikes: see attempt. failedAt is the stage's count of passed messages at
	// the last failure.
	strikes  int
	failedAt uint64
	state    state
	started  time.Time // of the handler under way
	timer    *time.Timer
	// alone: it is not handled together with others. The worker that runs it sets it.
	alone bool
	// shuffled: it was delivered suspiciously often and has its place in the random
	// order of such messages.
	shuffled bool
}

type state int

const (
	queued   state = iota
	running        // its handler runs
	settling       // its handler has returned, and the verdict goes to the broker
	parked         // to be tried again when its timer fires
)

// busy reports whether its handler runs, or its verdict is on the way to the broker.
func (d *delivery) busy() bool { return d.state == running || d.state == settling }

// tries counts the attempts so far, the one under way included.
func (d *delivery) tries() int { return d.deliveries + d.retries }

// decoded is a message as far as its envelope could be read.
type decoded struct {
	meta events.Meta
	data []byte
}

func decodeAs[In events.Payload](m decoded) (events.Event[In], error) {
	return events.DecodeData[In](m.meta, m.data)
}

// newDelivery reads what the broker says of a message.
func newDelivery(msg jetstream.Msg) (*delivery, error) {
	info, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("pipeline: read metadata: %w", err)
	}
	d := &delivery{seq: info.Sequence.Stream, msg: msg, deliveries: int(info.NumDelivered)}
	d.project, d.key = keyOf(msg.Subject())
	if n, err := strconv.Atoi(msg.Headers().Get(triesHeader)); err == nil {
		d.retries = max(n, 0)
	}
	return d, nil
}

// triesHeader counts the attempts at the message that this one is a copy of.
const triesHeader = "Palimpsest-Tries"

// keyOf is the project and the fact scope that a subject names. A subject that
// names none is its own key: the message will be buried.
func keyOf(subject string) (project, key string) {
	_, s, err := events.ParseSubject(subject)
	if err != nil {
		return "", subject
	}
	return s.Project, s.Fact().String()
}

// raw is the message as the envelope's decoder takes it.
func raw(msg jetstream.Msg, streamID string) (events.Raw, error) {
	info, err := msg.Metadata()
	if err != nil {
		return events.Raw{}, fmt.Errorf("pipeline: read metadata: %w", err)
	}
	return events.Raw{
		Subject: msg.Subject(), Header: msg.Headers(), Body: msg.Data(),
		Stream: info.Stream, StreamID: streamID, Sequence: info.Sequence.Stream,
		Time: info.Timestamp.UTC(), Delivery: int(info.NumDelivered),
	}, nil
}
