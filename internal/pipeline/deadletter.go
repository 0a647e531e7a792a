package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// DeadLetterStream is where the runtime buries.
const DeadLetterStream = "DEADLETTER"

// Why a letter cannot be shown, retried or dropped.
var (
	// ErrNoLetter: no dead letter has that sequence.
	ErrNoLetter = errors.New("pipeline: no such dead letter")
	// ErrClipped: the letter keeps only the first part of a large message, and its
	// stream holds it no more.
	ErrClipped = errors.New("pipeline: only the first part of the message is kept")
	// ErrCommitted: the message is an effect. It stands in AUDIT, which must not
	// hold it twice.
	ErrCommitted = errors.New("pipeline: the message is in AUDIT")
	// ErrUnfit: the message is no legal one and has no legal form.
	ErrUnfit = errors.New("pipeline: the message cannot be published again")
	// ErrRemembered: the stream takes the message for the one that was refused a
	// moment ago. It passes.
	ErrRemembered = errors.New("pipeline: the stream still remembers the message")
)

// Letter is a dead letter as it lies in its stream.
type Letter struct {
	// Sequence addresses the letter.
	Sequence uint64 `json:"sequence"`
	ID       string `json:"id"`
	events.MessageBuried
	// Scope is as much of the scope as could be read.
	Scope         scope.Scope `json:"scope"`
	CorrelationID string      `json:"correlation_id,omitempty"`
	CausationID   string      `json:"causation_id,omitempty"`
	// Traceparent and Tracestate are the trace context of the attempt that was
	// the last.
	Traceparent string `json:"traceparent,omitempty"`
	Tracestate  string `json:"tracestate,omitempty"`
}

// LetterFilter narrows a list. Empty fields match all.
type LetterFilter struct {
	Service string
	Project string
	User    string
	Code    string
}

// Letters administers the dead letters.
type Letters struct {
	js     jetstream.JetStream
	broker *broker
	now    func() time.Time
}

// Letters administers the dead letters of this runtime's broker.
func (rt *Runtime) Letters() *Letters {
	return &Letters{js: rt.js, now: rt.now, broker: rt.broker}
}

func (f LetterFilter) subject() string {
	token := func(id string) string {
		if id == "" {
			return "*"
		}
		return scope.Encode(id)
	}
	return fmt.Sprintf("palimpsest.%s.%s.%s.%s.*.*", events.NounDeadLetter, token(f.Service), token(f.Project), token(f.User))
}

// List returns at most limit (1 to 1000) letters that match, oldest first, from
// behind sequence after. cursor is what to pass as after for the next page; 0
// where there is none.
func (l *Letters) List(ctx context.Context, f LetterFilter, after uint64, limit int) (deadLetters []Letter, cursor uint64, err error) {
	if limit < 1 || limit > 1000 {
		return nil, 0, fmt.Errorf("pipeline: list dead letters: limit %d is not between 1 and 1000", limit)
	}
	stream, err := l.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return nil, 0, fmt.Errorf("pipeline: list dead letters: %w", err)
	}
	subject := f.subject()
	for len(deadLetters) < limit {
		msg, err := stream.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(subject))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return deadLetters, 0, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("pipeline: list dead letters: %w", err)
		}
		after = msg.Sequence
		letter, err := readLetter(msg)
		if err != nil {
			return nil, 0, err
		}
		if f.Code == "" || f.Code == letter.Code {
			deadLetters = append(deadLetters, letter)
		}
	}
	return deadLetters, after, nil
}

// Count is how many letters there are.
func (l *Letters) Count(ctx context.Context) (uint64, error) {
	stream, err := l.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return 0, fmt.Errorf("pipeline: count dead letters: %w", err)
	}
	return stream.CachedInfo().State.Msgs, nil
}

// Show returns one letter, or [ErrNoLetter].
func (l *Letters) Show(ctx context.Context, sequence uint64) (Letter, error) {
	_, letter, err := l.get(ctx, sequence)
	return letter, err
}

// Drop deletes one letter and overwrites its bytes.
func (l *Letters) Drop(ctx context.Context, sequence uint64) error {
	stream, letter, err := l.get(ctx, sequence)
	if err == nil {
		err = l.settle(ctx, stream, letter)
	}
	if err != nil {
		return fmt.Errorf("pipeline: drop dead letter %d: %w", sequence, err)
	}
	return nil
}

// settle removes a letter that is done with, and with it an episode that another
// attempt might store: a rebuild would store that in a place that it did not get.
func (l *Letters) settle(ctx context.Context, deadLetters jetstream.Stream, letter Letter) error {
	if slices.Contains(fickle, letter.Code) && strings.HasPrefix(letter.Subject, "palimpsest."+events.NounEpisodes+".") {
		_, stands, err := l.original(ctx, letter)
		if err == nil && stands {
			err = l.broker.erase(ctx, letter.MessageBuried)
		}
		if err != nil {
			return err
		}
	}
	err := remove(ctx, deadLetters, letter.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return ErrNoLetter // another call has deleted it
	}
	return err
}

func (l *Letters) get(ctx context.Context, sequence uint64) (jetstream.Stream, Letter, error) {
	stream, err := l.js.Stream(ctx, DeadLetterStream)
	if err != nil {
		return nil, Letter{}, fmt.Errorf("pipeline: dead letter %d: %w", sequence, err)
	}
	msg, err := stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) || sequence == 0 {
		return nil, Letter{}, fmt.Errorf("dead letter %d: %w", sequence, ErrNoLetter)
	}
	if err != nil {
		return nil, Letter{}, fmt.Errorf("pipeline: dead letter %d: %w", sequence, err)
	}
	letter, err := readLetter(msg)
	return stream, letter, err
}

func readLetter(msg *jetstream.RawStreamMsg) (Letter, error) {
	meta, data, err := events.Decode(events.Raw{
		Subject: msg.Subject, Header: msg.Header, Body: msg.Data,
		Stream: DeadLetterStream, Sequence: msg.Sequence, Time: msg.Time,
	})
	if err != nil {
		return Letter{}, fmt.Errorf("pipeline: read dead letter %d: %w", msg.Sequence, err)
	}
	in, err := events.DecodeData[events.MessageBuried](meta, data)
	if err != nil {
		return Letter{}, fmt.Errorf("pipeline: read dead letter %d: %w", msg.Sequence, err)
	}
	return Letter{
		Sequence: msg.Sequence, ID: meta.ID, MessageBuried: in.Data, Scope: meta.Scope,
		CorrelationID: meta.CorrelationID, CausationID: meta.CausationID,
		Traceparent: meta.Traceparent, Tracestate: meta.Tracestate,
	}, nil
}
