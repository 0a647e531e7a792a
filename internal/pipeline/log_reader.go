package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/cursor"
	"palimpsest/internal/failpoint"
	"palimpsest/internal/tail"
	"palimpsest/pkg/events"
)

// logReader reads one partition.
type logReader struct {
	*logGroup
	part     Partition
	stop     context.Context //nolint:containedctx // the lifetime of the reader
	cancel   context.CancelFunc
	handlers context.Context //nolint:containedctx // the lifetime of its handlers
	pending  atomic.Uint64   // messages behind the last that was read
	waiting  atomic.Int64    // messages that are held
	wrote    atomic.Uint64   // sequence of the cursor that was written last
	again    atomic.Bool     // the store went back

	tail     *tail.Reader
	streamID string
	at       cursor.Cursor // as it is stored
	flushed  time.Time
	since    int      // messages that were handled since
	read     uint64   // sequence of the last message that was read
	held     []*Entry // in stream order: to be tried again
	tries    int      // of held, in a row
	retryAt  time.Time
	counted  bool // this start is
	// caughtUp: the cursor was written with nothing left to read.
	caughtUp bool
	// careful is how many messages are yet to be handled one by one.
	careful int
	// suspect has the mark that an earlier start left, until its message is handled.
	suspect cursor.Cursor
}

// run reads until the reader is stopped. After a failure it starts again from the
// cursor.
func (r *logReader) run() {
	for failures := 0; r.stop.Err() == nil; failures++ {
		began := time.Now()
		err := r.begin()
		if err == nil {
			err = r.follow()
		}
		r.end()
		if r.stop.Err() != nil {
			return
		}
		r.log.Warn("restart the reader", "reader", r.part.Reader, "error", err)
		if time.Since(began) > r.rt.cfg.RetryMax {
			failures = 0
		}
		r.pause(backoff(failures+1, r.rt.cfg.RetryBase, logIdle, rand.Float64()))
	}
}

func (r *logReader) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.stop.Done():
	}
}

// begin finds the place to read from.
func (r *logReader) begin() error {
	ctx, cancel := within(r.stop, r.rt.cfg.PublishTimeout)
	defer cancel()
	stream, err := r.rt.js.Stream(ctx, r.Stream)
	if err != nil {
		return fmt.Errorf("look up stream %s: %w", r.Stream, err)
	}
	r.streamID = identity(stream)
	cursors, err := r.Cursors.ReadCursors(ctx, r.part.Reader)
	if err != nil {
		return err
	}
	r.at = cursors[0]
	r.wrote.Store(r.at.Sequence)
	if err := r.adopt(ctx, stream.CachedInfo().State.LastSeq); err != nil {
		return err
	}
	r.tail = tail.New(tail.Config{JS: r.rt.js, Stream: r.Stream, Filters: []string{r.part.Filter}, After: r.at.Sequence, Ahead: r.Batch})
	r.read, r.held, r.tries, r.flushed = r.at.Sequence, nil, 0, time.Now()
	r.counted, r.caughtUp, r.careful, r.suspect = false, false, 0, cursor.Cursor{}
	if r.at == cursors[0] {
		return nil
	}
	return r.set(ctx, r.at)
}

// count counts the start, before its first message is handled. After too many
// without progress, messages are handled one by one, and after a death that left a
// mark.
func (r *logReader) count() error {
	c := r.at
	c.Starts++
	if c.Alone > c.Sequence {
		r.suspect = cursor.Cursor{Alone: c.Alone, Deaths: c.Deaths}
	}
	if c.Starts >= suspectStarts || r.suspect.Alone != 0 {
		r.careful = r.Batch
		r.log.Warn("handling messages one by one: the process died repeatedly at one cursor",
			"reader", r.part.Reader, "behind", c.Sequence, "starts", c.Starts, "alone", c.Alone)
	}
	r.counted = true
	return r.set(r.handlers, c) // messages that were read are handled even while the stage stops
}

// adopt turns a cursor that says nothing of the stream into one that does. The
// stream may have been lost, or restored from an older copy: then all that it has
// is read again, and the handler finds what it knows.
func (r *logReader) adopt(ctx context.Context, last uint64) error {
	switch c := r.at; {
	case c.Stream == "":
		after := uint64(0)
		if r.Adopt != nil {
			var err error
			if after, err = r.Adopt(ctx, r.part); err != nil {
				return fmt.Errorf("find the start of %s: %w", r.part.Reader, err)
			}
		}
		r.at = cursor.Cursor{Stream: r.streamID, Sequence: after}
	case c.Stream != r.streamID, last < c.Sequence:
		r.log.Error("the stream lost messages that were read", "reader", r.part.Reader, "stream", r.Stream,
			"read_up_to", c.Sequence, "stream_ends_at", last, "read_from", c.Stream, "is", r.streamID)
		r.at = cursor.Cursor{Stream: r.streamID}
	}
	return nil
}

func identity(s jetstream.Stream) string {
	info := s.CachedInfo()
	return info.Config.Name + "@" + info.Created.UTC().Format(time.RFC3339Nano)
}

// follow reads and handles until the reader is stopped.
func (r *logReader) follow() error {
	for r.stop.Err() == nil {
		if r.again.Swap(false) {
			return cursor.ErrWentBack
		}
		messages, err := r.collect()
		if err != nil {
			return err
		}
		if len(messages) > 0 && !r.counted {
			if err := r.count(); err != nil {
				return err
			}
		}
		r.handle(r.entries(messages))
		r.since += len(messages)
		if r.stop.Err() == nil && (len(messages) == 0 || r.marked() || time.Since(r.flushed) >= r.interval()) {
			if err := r.flush(r.stop, false); err != nil {
				r.log.Warn("write the cursor", "reader", r.part.Reader, "error", err) // with the next batch
			}
		}
	}
	return nil
}

// collect returns the next messages, after it lingered for more. It reads none while
// too many are held.
func (r *logReader) collect() ([]tail.Message, error) {
	if len(r.held) >= logHeld {
		r.pause(time.Until(r.retryAt))
		return nil, nil
	}
	messages, err := r.tail.Read(r.stop, r.Batch, r.patience())
	for until := time.Now().Add(r.Linger); err == nil && len(messages) > 0 && len(messages) < r.Batch; {
		left := time.Until(until)
		if left <= 0 {
			break
		}
		more, failed := r.tail.Read(r.stop, r.Batch-len(messages), left)
		if failed != nil {
			break // handle the messages that were read first
		}
		messages = append(messages, more...)
	}
	if len(messages) > 0 {
		r.pending.Store(messages[len(messages)-1].Pending)
	}
	return messages, err
}

// patience is how long the next message is waited for: until there is something
// else to do.
func (r *logReader) patience() time.Duration {
	switch {
	case len(r.held) > 0:
		return max(time.Until(r.retryAt), time.Millisecond)
	case r.low() > r.at.Sequence || r.counted && r.at.Starts > 0:
		return r.interval()
	}
	return logIdle
}

// interval is how often the cursor is written. Readiness waits until it has caught up
// after a start.
func (r *logReader) interval() time.Duration {
	if !r.caughtUp || r.since >= logDue {
		return logFlush
	}
	return logRest
}

// end lets go of the stream. A reader that ends by itself has killed nothing.
func (r *logReader) end() {
	if r.tail != nil {
		r.tail.Close()
	}
	if r.streamID != "" && r.stop.Err() != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.handlers), grace)
		defer cancel()
		if err := r.flush(ctx, true); err != nil {
			r.log.Debug("write the cursor", "reader", r.part.Reader, "error", err)
		}
	}
	r.held = nil
	r.pending.Store(0)
	r.waiting.Store(0)
}

// low is the sequence up to which all is handled.
func (r *logReader) low() uint64 {
	if len(r.held) > 0 {
		return r.held[0].raw.Sequence - 1
	}
	return r.read
}

// marked reports whether the mark of a message that has been handled still stands.
func (r *logReader) marked() bool { return r.at.Alone != r.suspect.Alone }

// flush writes how far the reader has come, if that is news, and removes the mark
// of a message that has been handled. A mark of an earlier start stays until its
// message is handled.
func (r *logReader) flush(ctx context.Context, clean bool) error {
	next := cursor.Cursor{Stream: r.streamID, Sequence: r.low(), Starts: r.at.Starts}
	// A start that has handled nothing yet shows nothing.
	if clean || r.counted && (len(r.held) == 0 || next.Sequence > r.at.Sequence) {
		next.Starts = 0
	}
	if r.suspect.Alone <= next.Sequence {
		r.suspect = cursor.Cursor{}
	}
	next.Alone, next.Deaths = r.suspect.Alone, r.suspect.Deaths
	r.flushed, r.since = time.Now(), 0
	if next == r.at {
		return nil
	}
	if err := r.set(ctx, next); err != nil {
		return err
	}
	r.caughtUp = r.caughtUp || r.pending.Load() == 0
	failpoint.Reach(r.Name, failpoint.Acked)
	return nil
}

func (r *logReader) set(ctx context.Context, c cursor.Cursor) error {
	ctx, cancel := context.WithTimeout(ctx, r.rt.cfg.PublishTimeout)
	defer cancel()
	if err := r.Cursors.SetCursor(ctx, r.part.Reader, r.wrote.Load(), c); err != nil {
		if errors.Is(err, cursor.ErrWentBack) { // all that was written since is lost too
			r.again.Store(true)
		}
		return err
	}
	r.at = c
	r.wrote.Store(c.Sequence)
	return nil
}

// entries decodes messages. Those that cannot be read are refused.
func (r *logReader) entries(messages []tail.Message) []*Entry {
	out := make([]*Entry, len(messages))
	for i, m := range messages {
		out[i], r.read = newEntry(m, r.Stream, r.streamID), m.Sequence
	}
	return out
}

func newEntry(m tail.Message, stream, streamID string) *Entry {
	return NewEntry(events.Raw{
		Subject: m.Subject, Header: m.Header, Body: m.Data, Stream: stream, StreamID: streamID,
		Sequence: m.Sequence, Time: m.Time, Delivery: 1,
	})
}
