package broker

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
)

// watch is how a reader knows that nothing was dropped between two messages that
// it sees: its filter leaves gaps too.
type watch struct {
	// Up to clear, what the consumer of that name delivers is known to follow
	// without a gap. The next consumer may find less.
	clear uint64
	by    string
	// passed: up to here there is nothing to read that was not read.
	passed uint64
	// number is that of the last delivery, of the consumer of that name.
	number uint64
	from   string
}

// whole returns [audit.ErrOvertaken] if AUDIT may have dropped something between
// the last message seen and the one at sequence, which was read just now; at and
// consumer tell of its delivery, if there was one. The stream is asked once for
// all that was delivered so far.
func (r *reader) whole(ctx context.Context, sequence uint64, at *jetstream.MsgMetadata, consumer jetstream.Consumer) error {
	w := r.watch
	if w == nil || sequence <= r.at {
		return nil
	}
	proven := false
	if at != nil {
		w.number, w.from = at.Sequence.Consumer, at.Consumer
		proven = at.Consumer == w.by && sequence <= w.clear
	}
	if proven || sequence <= max(r.at, w.passed)+1 {
		return nil
	}
	delivered, by := sequence, ""
	if at != nil && at.NumPending > 0 {
		// Asked before the stream: what is there then was there when this was sent.
		info, err := consumer.Info(ctx)
		if err != nil {
			return err
		}
		delivered, by = info.Delivered.Stream, info.Name
	}
	if err := r.unbroken(ctx); err != nil {
		return err
	}
	w.clear, w.by = delivered, by
	return nil
}

// wholeUpTo is whole for the message that was to be the last, and was not seen if
// AUDIT dropped it meanwhile.
func (r *reader) wholeUpTo(ctx context.Context, last uint64) error {
	if r.watch == nil || r.at >= last {
		return nil
	}
	return r.unbroken(ctx)
}

// unbroken: AUDIT still holds all that stands behind what was seen.
func (r *reader) unbroken(ctx context.Context) error {
	begin, err := r.journal.Begin(ctx)
	if err == nil && begin > max(r.at, r.watch.passed)+1 {
		err = fmt.Errorf("%w: AUDIT begins at %d", audit.ErrOvertaken, begin)
	}
	return err
}

// pass notes, in a silence, how far the consumer has looked: what does not match
// the filter may be dropped unseen. What it delivered and was not seen got lost.
func (r *reader) pass(ctx context.Context, consumer jetstream.Consumer) error {
	info, err := consumer.Info(ctx)
	if err != nil {
		return nil //nolint:nilerr // the reader goes on by itself, and looks again in the next silence
	}
	if err := r.unbroken(ctx); err != nil {
		return err
	}
	seen := uint64(0)
	if info.Name == r.watch.from {
		seen = r.watch.number
	}
	if info.Delivered.Consumer != seen || info.NumPending > 0 {
		return errUnserved // or it came just now, and is read again
	}
	r.watch.passed = max(r.watch.passed, info.Delivered.Stream)
	return nil
}
