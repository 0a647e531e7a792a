package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// broker publishes.
type broker struct {
	js        jetstream.JetStream
	conn      *nats.Conn
	now       func() time.Time
	timeout   time.Duration
	tracing   tracing
	admission *admission // nil without messages of callers
}

// Publish implements [Publisher].
func (b *broker) Publish(ctx context.Context, meta events.Meta, p events.Payload) (sequence uint64, err error) {
	if meta.ID == "" {
		meta.ID = uuid.NewString()
	}
	if meta.Time.IsZero() {
		meta.Time = b.now()
	}
	if meta.Traceparent == "" {
		meta.Traceparent, meta.Tracestate = TraceOf(ctx)
	}
	out, err := b.outgoing(ctx, meta, p)
	if err != nil {
		return 0, err
	}
	if p.Kind() == events.KindEpisodeRecorded && b.admission != nil {
		if err := b.admission.admit(p.Owner().Project); err != nil {
			return 0, err
		}
	}
	ack, err := b.send(ctx, out)
	if err != nil {
		return 0, err
	}
	failpoint.Reach(failpoint.Query, failpoint.Published)
	return ack.Sequence, nil
}

func encode(meta events.Meta, p events.Payload) (*nats.Msg, error) {
	subject, header, body, err := events.Encode(meta, p)
	if err != nil {
		return nil, fmt.Errorf("pipeline: encode %s: %w", p.Kind(), err)
	}
	return &nats.Msg{Subject: subject, Header: header, Data: body}, nil
}

// outgoing is the message of a payload, with its span begun.
func (b *broker) outgoing(ctx context.Context, meta events.Meta, p events.Payload) (outgoing, error) {
	span := b.tracing.publish(ctx, &meta, p)
	msg, err := encode(meta, p)
	out := outgoing{msg, span}
	if err != nil {
		out.sent(err)
	}
	return out, err
}

// send waits for the stream to hold the message.
func (b *broker) send(ctx context.Context, out outgoing) (*jetstream.PubAck, error) {
	ctx, cancel := within(ctx, b.timeout)
	defer cancel()
	ack, err := b.js.PublishMsg(ctx, out.msg)
	out.sent(err)
	if err != nil {
		return nil, publishError(out.msg, err)
	}
	return ack, nil
}

// publishError names the subject of a message that could not be published. It
// rejects a message that is too large, because a retry cannot succeed.
func publishError(msg *nats.Msg, err error) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return Reject(events.CodeTooLarge, "", fmt.Errorf("pipeline: publish to %s: %w", msg.Subject, err))
	case noRoom(err):
		return fmt.Errorf("pipeline: publish to %s: %w (%w)", msg.Subject, ErrFull, err)
	}
	return fmt.Errorf("pipeline: publish to %s: %w", msg.Subject, err)
}

// noRoom reads the stream's error: its account may take no more, its server may
// not, or the file system has nothing left.
func noRoom(err error) bool {
	const accountExceeded, insufficient, storageExceeded, storeFailed = 10002, 10023, 10047, 10077
	var refused *jetstream.APIError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.ErrorCode {
	case accountExceeded, insufficient, storageExceeded:
		return true
	case storeFailed:
		return strings.Contains(refused.Description, "no space left") || strings.Contains(refused.Description, "maximum bytes")
	}
	return false
}

// follow publishes the payloads that cause led to, in order, and returns when the
// streams hold all of them. Ids depend on the cause alone, so that a second attempt
// repeats the first. point is the stage of the failpoints passed.
func (b *broker) follow(ctx context.Context, cause events.Meta, source, point string, payloads []events.Payload) error {
	var out bundle
	b.compose(ctx, &out, cause, source, payloads)
	return b.sendBundle(ctx, point, out)
}

// bundle is messages that are sent together: those for streams, and those that only
// announce. err is why there are not more of them; then none is sent.
type bundle struct {
	streamed  []outgoing
	announced []*nats.Msg
	err       error
}

// sendBundle sends first what the streams must hold.
func (b *broker) sendBundle(ctx context.Context, point string, out bundle) error {
	err := out.err
	if err == nil {
		err = b.sendAll(ctx, point, out.streamed)
	}
	if err != nil {
		for _, one := range out.streamed {
			one.sent(err) // a span that has ended stays as it is
		}
		return err
	}
	for _, msg := range out.announced {
		if err := b.conn.PublishMsg(msg); err != nil {
			return publishError(msg, err)
		}
		failpoint.Reach(point, failpoint.Published)
	}
	return nil
}

// compose adds the messages of payloads that a cause led to.
func (b *broker) compose(ctx context.Context, out *bundle, cause events.Meta, source string, payloads []events.Payload) {
	for i, p := range payloads {
		if out.err != nil {
			return
		}
		meta := b.follower(cause, source, followerID(cause.ID, p, strconv.Itoa(i)))
		if p.Kind() == events.KindOutcomeAnnounced {
			var msg *nats.Msg
			msg, out.err = encode(meta, p)
			out.announced = append(out.announced, msg)
			continue
		}
		var one outgoing
		one, out.err = b.outgoing(ctx, continued(meta, p), p)
		out.streamed = append(out.streamed, one)
	}
}

func (b *broker) follower(cause events.Meta, source, id string) events.Meta {
	correlation := cause.CorrelationID
	if correlation == "" {
		correlation = cause.ID
	}
	return events.Meta{
		ID: id, Source: source, Time: b.now(), CorrelationID: correlation, CausationID: cause.ID,
		Traceparent: cause.Traceparent, Tracestate: cause.Tracestate,
	}
}

// continued returns meta with the trace that the payload names, if it names one.
func continued(meta events.Meta, p events.Payload) events.Meta {
	if about, ok := p.(events.Continued); ok {
		if traceparent := about.Continues(); traceparent != "" {
			meta.Traceparent, meta.Tracestate = traceparent, ""
		}
	}
	return meta
}

// followerID is the hash of (cause, kind, index), or of the payload's own identity
// if it has one.
func followerID(cause string, p events.Payload, index string) string {
	kind := string(p.Kind())
	if named, ok := p.(events.Identified); ok {
		return events.HashID(append([]string{kind}, named.Identity()...)...)
	}
	return events.HashID(cause, kind, index)
}

// sendAll publishes in order without waiting in between.
func (b *broker) sendAll(ctx context.Context, point string, msgs []outgoing) error {
	switch len(msgs) {
	case 0:
		return nil
	case 1:
		if _, err := b.send(ctx, msgs[0]); err != nil {
			return err
		}
		failpoint.Reach(point, failpoint.Published)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	futures := make([]jetstream.PubAckFuture, 0, len(msgs))
	for _, out := range msgs {
		f, err := b.js.PublishMsgAsync(out.msg)
		if err != nil {
			out.sent(err)
			return publishError(out.msg, err)
		}
		futures = append(futures, f)
	}
	for i, f := range futures {
		var err error
		select {
		case <-f.Ok():
			failpoint.Reach(point, failpoint.Published)
		case err = <-f.Err():
		case <-ctx.Done():
			err = ctx.Err()
		}
		msgs[i].sent(err)
		if err != nil {
			return publishError(msgs[i].msg, err)
		}
	}
	return nil
}

// bury publishes a dead letter. Every message has a legal one, however malformed its
// envelope is.
func (b *broker) bury(ctx context.Context, source string, cause events.Meta, l events.MessageBuried) error {
	id := letterID(l.Stream, l.Sequence, l.Service)
	meta := events.Meta{
		ID: id, Source: source, Time: l.BuriedAt,
		CorrelationID: cause.CorrelationID, CausationID: cause.ID, Traceparent: cause.Traceparent, Tracestate: cause.Tracestate,
	}
	msg, err := encode(meta, l)
	if err != nil {
		meta.CorrelationID, meta.CausationID, meta.Traceparent, meta.Tracestate, l.Scope = "", "", "", "", scope.Scope{}
		if msg, err = encode(meta, l); err != nil {
			return err
		}
	}
	msg.Header.Set(jetstream.MsgIDHeader, id)
	if _, err = b.send(ctx, outgoing{msg: msg}); err != nil || !withheld(l) {
		return err
	}
	return b.erase(ctx, l)
}

// standIn publishes the stand-in of a buried message.
func (b *broker) standIn(ctx context.Context, cause events.Meta, source string, p events.Payload) error {
	out, err := b.outgoing(ctx, b.follower(cause, source, followerID(cause.ID, p, "skipped")), p)
	if err != nil {
		return err
	}
	_, err = b.send(ctx, out)
	return err
}
