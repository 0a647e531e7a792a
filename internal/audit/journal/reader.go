package journal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/tail"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
)

const (
	// singleReads is how many effects are asked for one by one before a reader of
	// the stream is made: rolling a scope forward rarely needs more than one or two.
	singleReads = 8
	// readAhead bounds the messages under way, and those that are handed over without
	// looking whether AUDIT was trimmed.
	readAhead = 64
	// readPatience is how long messages are waited for before the end of AUDIT is
	// looked at again. followPatience is longer than [tail.Reader] takes to find a
	// message that got lost.
	readPatience   = 2 * time.Second
	followPatience = 5 * time.Second
	// failurePause follows a failed read, and failureLimit is how long reads may fail.
	failurePause = 250 * time.Millisecond
	failureLimit = 30 * time.Second
)

// errStopped: the reader wants no more.
var errStopped = errors.New("stopped")

// reader is one read of the journal.
type reader struct {
	journal *Journal
	filter  string
	at      uint64 // sequence of the last message seen
	end     uint64 // sequence of the last message to see; [math.MaxUint64] goes on without end
	// watch looks for messages that AUDIT drops unread; revisions tell other reads.
	watch  bool
	passed uint64 // up to here there is nothing to read that was not read
	yield  func(events.Event[events.EffectCommitted], error) bool
}

func (r *reader) endless() bool { return r.end == math.MaxUint64 }

func (r *reader) run(ctx context.Context) error {
	if r.endless() {
		return r.stream(ctx)
	}
	var err error
	if r.end, err = r.journal.last(ctx, r.filter); err != nil {
		return err
	}
	last := r.end
	for range singleReads {
		if done, err := r.single(ctx); done || err != nil {
			return errors.Join(err, r.unbrokenUpTo(ctx, last))
		}
	}
	if err := r.stream(ctx); err != nil {
		return err
	}
	return r.unbrokenUpTo(ctx, last)
}

// single reads one message by itself.
func (r *reader) single(ctx context.Context) (done bool, err error) {
	if r.at >= r.end {
		return true, nil
	}
	stream, err := r.journal.bind(ctx)
	if err != nil {
		return false, err
	}
	msg, err := stream.GetMsg(ctx, r.at+1, jetstream.WithGetMsgSubject(r.filter))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return true, nil // purged meanwhile
	case err != nil:
		return false, err
	case msg.Sequence > r.end:
		return true, nil
	}
	if err := r.unbroken(ctx); err != nil {
		return false, err
	}
	return false, r.take(tail.Message{Subject: msg.Subject, Header: msg.Header, Data: msg.Data, Sequence: msg.Sequence, Time: msg.Time})
}

// stream reads the rest.
func (r *reader) stream(ctx context.Context) error {
	from := tail.New(tail.Config{
		JS: r.journal.js, Stream: topology.StreamAudit, Filters: []string{r.filter}, After: r.at, Ahead: readAhead,
	})
	defer from.Close()
	failing := time.Time{}
	for r.at < r.end {
		messages, err := r.next(ctx, from)
		switch {
		case err == nil:
			failing = time.Time{}
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, tail.ErrCut), errors.Is(err, audit.ErrTrimmed), !failing.IsZero() && time.Since(failing) > failureLimit:
			return err
		default:
			if failing.IsZero() {
				failing = time.Now()
			}
			pause(ctx)
			continue
		}
		if done, err := r.takeAll(ctx, messages); done || err != nil {
			return err
		}
	}
	return nil
}

func pause(ctx context.Context) {
	timer := time.NewTimer(failurePause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// next waits for messages. In a silence it notes how far AUDIT was read: AUDIT may
// drop effects of other scopes.
func (r *reader) next(ctx context.Context, from *tail.Reader) ([]tail.Message, error) {
	if !r.endless() {
		return from.Read(ctx, readAhead, readPatience)
	}
	first, last, err := r.journal.extent(ctx)
	if err != nil {
		return nil, err
	}
	if first > max(r.at, r.passed)+1 {
		return nil, errTrimmed(first)
	}
	messages, err := from.Read(ctx, readAhead, followPatience)
	if err == nil && len(messages) == 0 {
		r.passed = max(r.passed, last)
	}
	return messages, err
}

// takeAll hands messages over, if AUDIT has dropped none before them, and looks
// whether the end of the read is reached.
func (r *reader) takeAll(ctx context.Context, messages []tail.Message) (done bool, err error) {
	if len(messages) > 0 {
		if err := r.unbroken(ctx); err != nil {
			return false, err
		}
	}
	for _, m := range messages {
		if m.Sequence > r.end {
			return true, nil
		}
		if err := r.take(m); err != nil {
			return false, err
		}
	}
	if r.endless() || len(messages) > 0 && messages[len(messages)-1].Pending > 0 {
		return false, nil
	}
	// What stood at the end may have been dropped. Only the leader knows: the replica
	// that serves the reader may lag.
	last, err := r.journal.last(ctx, r.filter)
	r.end = min(r.end, last)
	return false, err
}

// unbroken returns [audit.ErrTrimmed] if AUDIT may have dropped something behind the
// last message seen. It is asked after messages arrived: what AUDIT holds then, it held
// when they were sent.
func (r *reader) unbroken(ctx context.Context) error {
	if !r.watch {
		return nil
	}
	begin, err := r.journal.Begin(ctx)
	if err == nil && begin > max(r.at, r.passed)+1 {
		return errTrimmed(begin)
	}
	return err
}

// unbrokenUpTo is unbroken for the message that was to be the last, and was not seen
// if AUDIT dropped it meanwhile.
func (r *reader) unbrokenUpTo(ctx context.Context, last uint64) error {
	if r.at >= last {
		return nil
	}
	return r.unbroken(ctx)
}

// take decodes a message and hands it over if it is an effect: AUDIT keeps other
// events, too.
func (r *reader) take(m tail.Message) error {
	meta, data, err := events.Decode(events.Raw{
		Subject: m.Subject, Header: m.Header, Body: m.Data, Stream: topology.StreamAudit, Sequence: m.Sequence, Time: m.Time,
	})
	if err != nil {
		return fmt.Errorf("decode effect %d: %w", m.Sequence, err)
	}
	r.at = m.Sequence
	if meta.Kind != events.KindEffectCommitted {
		return nil
	}
	effect, err := events.DecodeData[events.EffectCommitted](meta, data)
	if err != nil {
		return fmt.Errorf("decode effect %d: %w", m.Sequence, err)
	}
	if !r.yield(effect, nil) {
		return errStopped
	}
	return nil
}
