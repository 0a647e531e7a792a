package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/cursor"
	"palimpsest/internal/tail"
	"palimpsest/pkg/events"
)

// Replay reads a log from end to end, outside of a runtime, for a rebuild.
type Replay struct {
	js      jetstream.JetStream
	stream  string
	service string // whose dead letters name the unhandled messages
}

// NewReplay returns the log of a stream that a service reads.
func NewReplay(js jetstream.JetStream, stream, service string) *Replay {
	return &Replay{js: js, stream: stream, service: service}
}

// replayBatch bounds the messages that are handed over together.
const replayBatch = 256

// Extent is what a stream holds: the sequences of its oldest and newest message
// (the last one that it ever held, where it is empty), and how many there are.
// Messages below First were dropped because of their age or the stream's size. First
// is 1 or less if none was.
type Extent struct{ First, Last, Messages uint64 }

// Extent is what the stream holds now.
func (p *Replay) Extent(ctx context.Context) (Extent, error) {
	stream, err := p.lookUp(ctx)
	if err != nil {
		return Extent{}, err
	}
	state := stream.CachedInfo().State
	return Extent{First: state.FirstSeq, Last: state.LastSeq, Messages: state.Msgs}, nil
}

func (p *Replay) lookUp(ctx context.Context) (jetstream.Stream, error) {
	stream, err := p.js.Stream(ctx, p.stream)
	if err != nil {
		return nil, fmt.Errorf("pipeline: look up stream %s: %w", p.stream, err)
	}
	return stream, nil
}

// Holds reports whether the stream holds a message at a sequence.
func (p *Replay) Holds(ctx context.Context, sequence uint64) (bool, error) {
	stream, err := p.lookUp(ctx)
	if err != nil {
		return false, err
	}
	_, err = stream.GetMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Read calls yield with the messages behind sequence after, in stream order, up to
// the one that was the last when it was called, until yield returns an error, which
// it returns. It leaves out messages that the service buried though another attempt
// might accept them: each message must keep its ordinal. It returns the cursor of a
// reader that has handled all of them.
func (p *Replay) Read(ctx context.Context, after uint64, yield func([]*Entry) error) (cursor.Cursor, error) {
	stream, err := p.lookUp(ctx)
	if err != nil {
		return cursor.Cursor{}, err
	}
	buried, err := p.buried(ctx)
	if err != nil {
		return cursor.Cursor{}, fmt.Errorf("pipeline: read the dead letters of %s: %w", p.service, err)
	}
	end := cursor.Cursor{Stream: identity(stream), Sequence: max(after, stream.CachedInfo().State.LastSeq)}
	err = readTo(ctx, p.js, stream, tail.Config{JS: p.js, Stream: p.stream, After: after}, end.Sequence, func(messages []tail.Message) error {
		entries := make([]*Entry, 0, len(messages))
		for _, m := range messages {
			if hash, ok := buried[m.Sequence]; ok && hash == hashOf(m.Data) {
				continue
			}
			entries = append(entries, newEntry(m, p.stream, end.Stream))
		}
		return yield(entries)
	})
	return end, err
}

// readTo calls yield with all messages of a reader up to a sequence.
func readTo(
	ctx context.Context, js jetstream.JetStream, stream jetstream.Stream, cfg tail.Config, end uint64, yield func([]tail.Message) error,
) error {
	r := tail.New(cfg)
	defer r.Close()
	for r.At() < end {
		messages, err := r.Read(ctx, replayBatch, 2*time.Second)
		switch {
		case err != nil && ctx.Err() == nil && js.Conn().IsConnected() && !errors.Is(err, tail.ErrCut):
			continue // the reader starts again after the last message
		case err != nil:
			return err
		}
		n := slices.IndexFunc(messages, func(m tail.Message) bool { return m.Sequence > end })
		if n < 0 {
			n = len(messages)
		}
		if n > 0 {
			if err := yield(messages[:n]); err != nil {
				return err
			}
		}
		if n < len(messages) {
			return nil
		}
		if len(messages) == 0 || messages[len(messages)-1].Pending == 0 {
			// The last messages may have been deleted. Only the leader knows.
			next, err := firstBehind(ctx, stream, r.At(), ">")
			if err != nil || next == nil {
				return err
			}
		}
	}
	return nil
}

// buried are the sequences and hashes of the messages that the service buried, and
// that another attempt, version or configuration might take.
func (p *Replay) buried(ctx context.Context) (map[uint64]string, error) {
	deadLetters, err := p.js.Stream(ctx, DeadLetterStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[uint64]string{}
	filter := LetterFilter{Service: p.service}.subject()
	last, err := deadLetters.GetLastMsgForSubject(ctx, filter)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = readTo(ctx, p.js, deadLetters, tail.Config{JS: p.js, Stream: DeadLetterStream, Filters: []string{filter}}, last.Sequence,
		func(messages []tail.Message) error {
			for _, m := range messages {
				l, err := readLetter(&jetstream.RawStreamMsg{Subject: m.Subject, Sequence: m.Sequence, Header: m.Header, Data: m.Data, Time: m.Time})
				if err == nil && l.Stream == p.stream && slices.Contains(fickle, l.Code) {
					found[l.MessageBuried.Sequence] = l.SHA256
				}
			}
			return nil
		})
	return found, err
}

// fickle are the codes of verdicts that another attempt, version or configuration
// may not come to. A message refused for another reason is refused again.
var fickle = []string{events.CodePoison, events.CodeUnknownKind, events.CodeTooLarge}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// End is the cursor of a reader that has handled all that the stream holds now.
func (p *Replay) End(ctx context.Context) (cursor.Cursor, error) {
	stream, err := p.lookUp(ctx)
	if err != nil {
		return cursor.Cursor{}, err
	}
	return cursor.Cursor{Stream: identity(stream), Sequence: stream.CachedInfo().State.LastSeq}, nil
}

// Unread reports whether the stream holds a message of a partition behind sequence
// after, up to sequence end.
func (p *Replay) Unread(ctx context.Context, part Partition, after, end uint64) (bool, error) {
	if after >= end {
		return false, nil
	}
	stream, err := p.lookUp(ctx)
	if err != nil {
		return false, err
	}
	first, err := firstBehind(ctx, stream, after, part.Filter)
	if err != nil {
		return false, fmt.Errorf("pipeline: look for messages of %s: %w", part.Reader, err)
	}
	return first != nil && first.Sequence <= end, nil
}
