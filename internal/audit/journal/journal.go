package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
)

// MaxEffect is the largest effect that the journal takes, in bytes of its data.
const MaxEffect = 1 << 20

// ErrEffectTooLarge: the effect must be split over consecutive revisions.
var ErrEffectTooLarge = errors.New("journal: effect is too large")

// Journal is the AUDIT stream as the list of effects of each fact scope. It
// implements [audit.Journal] and may be used concurrently.
//
// All reads ask the stream's leader, so that they see every commit that was
// acknowledged before.
type Journal struct {
	js jetstream.JetStream

	mu     sync.Mutex
	stream jetstream.Stream // nil until first needed
}

var (
	_ audit.Journal       = (*Journal)(nil)
	_ audit.RebuildReader = (*Journal)(nil)
	_ audit.Stream        = (*Journal)(nil)
)

// New returns the journal of a broker that has the topology.
func New(js jetstream.JetStream) *Journal { return &Journal{js: js} }

// Append implements [audit.Appender].
func (j *Journal) Append(ctx context.Context, meta events.Meta, effect events.EffectCommitted, after uint64) (uint64, error) {
	subject, header, body, err := events.Encode(meta, effect)
	if err != nil {
		return 0, fmt.Errorf("append effect: %w", err)
	}
	if len(body) > MaxEffect {
		return 0, fmt.Errorf("append effect: %w: %d bytes, more than %d", ErrEffectTooLarge, len(body), MaxEffect)
	}
	msg := &nats.Msg{Subject: subject, Header: header, Data: body}
	ack, err := j.publish(ctx, msg, after)
	if wrongLast(err) && after > 0 {
		trimmed, asked := j.trimmed(ctx, subject, after)
		if asked != nil {
			return 0, fmt.Errorf("append effect to %s: %w", subject, asked)
		}
		if trimmed {
			ack, err = j.publish(ctx, msg, 0)
		}
	}
	switch {
	case wrongLast(err):
		return 0, fmt.Errorf("append effect to %s after %d: %w", subject, after, audit.ErrConflict)
	case err != nil:
		return 0, fmt.Errorf("append effect to %s: %w", subject, err)
	case ack.Duplicate:
		// The id stands in the stream already, perhaps with other content: only
		// reading it tells.
		return 0, fmt.Errorf("append effect to %s: id %s was appended at %d: %w", subject, meta.ID, ack.Sequence, audit.ErrConflict)
	}
	return ack.Sequence, nil
}

// publish appends a message whose subject must be at a sequence. A replicated
// stream also refuses while it is not done with the append before, which it has
// acknowledged perhaps: that says nothing of the sequence, and is over soon.
func (j *Journal) publish(ctx context.Context, msg *nats.Msg, after uint64) (*jetstream.PubAck, error) {
	for wait := time.Millisecond; ; wait *= 2 {
		ack, err := j.js.PublishMsg(ctx, msg,
			jetstream.WithExpectStream(topology.StreamAudit),
			jetstream.WithExpectLastSequencePerSubject(after))
		if !refusedAs(err, jetstream.JSErrCodeStreamWrongLastSequenceConstant) || wait > underWay {
			return ack, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// underWay bounds the pause in which an append is waited for that was before.
const underWay = 500 * time.Millisecond

// trimmed reports whether the stream dropped all that it held of a subject
// because of its age or size, the effect at sequence after with it: then what
// comes next is the first of the subject again. A subject that lost its newest
// effect in another way is not trimmed: the stream does not begin behind it.
func (j *Journal) trimmed(ctx context.Context, subject string, after uint64) (bool, error) {
	if last, err := j.last(ctx, subject); err != nil || last > 0 {
		return false, err
	}
	stream, err := j.bind(ctx)
	if err != nil {
		return false, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return false, err
	}
	return info.State.FirstSeq > after, nil
}

// wrongLast reports whether the subject's last sequence is not the expected one,
// or is about to be another.
func wrongLast(err error) bool {
	return refusedAs(err, jetstream.JSErrCodeStreamWrongLastSequence) ||
		refusedAs(err, jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

func refusedAs(err error, code jetstream.ErrorCode) bool {
	var refused *jetstream.APIError
	return errors.As(err, &refused) && refused.ErrorCode == code
}

// Last implements [audit.Reader].
func (j *Journal) Last(ctx context.Context) (uint64, error) {
	last, err := j.last(ctx, allEffects)
	if err != nil {
		return 0, fmt.Errorf("read journal: %w", err)
	}
	return last, nil
}

// last is the sequence of the newest message that matches a filter, 0 for none.
func (j *Journal) last(ctx context.Context, filter string) (uint64, error) {
	stream, err := j.bind(ctx)
	if err != nil {
		return 0, err
	}
	msg, err := stream.GetLastMsgForSubject(ctx, filter)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return msg.Sequence, nil
}

func (j *Journal) bind(ctx context.Context) (jetstream.Stream, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stream != nil {
		return j.stream, nil
	}
	stream, err := j.js.Stream(ctx, topology.StreamAudit)
	if err != nil {
		return nil, err
	}
	if stream.CachedInfo().Config.AllowDirect {
		return nil, fmt.Errorf("%w: %s allows direct gets, which may miss commits", topology.ErrIncompatible, topology.StreamAudit)
	}
	j.stream = stream
	return stream, nil
}

// ResumeAt lets AUDIT go on at a sequence above all that it holds, and drops what
// it holds: it was lost, or cut short, and the sequences below are taken. It
// changes nothing where AUDIT has come as far.
func (j *Journal) ResumeAt(ctx context.Context, sequence uint64) error {
	stream, err := j.bind(ctx)
	if err != nil {
		return fmt.Errorf("resume journal: %w", err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("resume journal: %w", err)
	}
	if info.State.LastSeq+1 >= sequence {
		return nil
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSequence(sequence)); err != nil {
		return fmt.Errorf("resume journal at %d: %w", sequence, err)
	}
	if info, err = stream.Info(ctx); err != nil {
		return fmt.Errorf("resume journal: %w", err)
	}
	if info.State.LastSeq+1 != sequence {
		return fmt.Errorf("resume journal at %d: AUDIT ends at %d", sequence, info.State.LastSeq)
	}
	return nil
}
