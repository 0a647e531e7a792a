package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// Retry sends the message of a dead letter once more and then deletes the dead
// letter. A range (a tick, its candidates or its deltas) runs as a late batch, which
// moves no watermark and loses against later event times; deltas are decided anew
// from their candidates. Any other message is published unchanged, under its own id.
// If that is impossible, the error is [ErrClipped], [ErrCommitted], [ErrUnfit] or,
// for now, [ErrRemembered].
func (l *Letters) Retry(ctx context.Context, sequence uint64) error {
	stream, letter, err := l.get(ctx, sequence)
	if err != nil {
		return err
	}
	body, err := l.body(ctx, letter)
	if err != nil {
		return fmt.Errorf("pipeline: retry dead letter %d: %w", sequence, err)
	}
	msg, err := l.again(letter, body)
	if err != nil {
		return fmt.Errorf("pipeline: retry dead letter %d: %w", sequence, unfit(err))
	}
	ack, err := l.broker.send(ctx, outgoing{msg: msg})
	if err != nil {
		return err
	}
	if ack.Duplicate && plain(msg.Header) { // else it is the retry of another caller
		return fmt.Errorf("pipeline: retry dead letter %d: %w", sequence, ErrRemembered)
	}
	if err := l.settle(ctx, stream, letter); err != nil && !errors.Is(err, ErrNoLetter) {
		return fmt.Errorf("pipeline: drop dead letter %d after its retry: %w", sequence, err)
	}
	return nil
}

// retryID is the id under which a letter's stream takes its message again, so
// that two who retry the same letter send it once.
func retryID(letter Letter) string {
	return events.HashID("retry", letter.ID, strconv.FormatUint(letter.Sequence, 10))
}

// body is the whole message, or what the letter keeps of it where that is enough.
// Of a large one the letter has the first part only; its stream may still hold
// the rest. A range needs no more than its name, which stands first.
func (l *Letters) body(ctx context.Context, letter Letter) ([]byte, error) {
	if !letter.Truncated {
		return letter.Data, nil
	}
	body, stands, err := l.original(ctx, letter)
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for the whole body: %w", err)
	case !stands:
		return letter.Data, nil
	}
	return body, nil
}

// original returns the message of a letter, and whether it is still where it was buried. A
// stream that was lost and created again has another one in its place.
func (l *Letters) original(ctx context.Context, letter Letter) (body []byte, stands bool, err error) {
	stream, err := l.js.Stream(ctx, letter.Stream)
	if err != nil {
		return nil, false, err
	}
	msg, err := stream.GetMsg(ctx, letter.MessageBuried.Sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return msg.Data, hashOf(msg.Data) == letter.SHA256, nil
}

// unfit marks what is wrong with the message itself.
func unfit(err error) error {
	if errors.Is(err, ErrClipped) || errors.Is(err, ErrCommitted) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnfit, err)
}

// again is the message to publish.
func (l *Letters) again(letter Letter, body []byte) (*nats.Msg, error) {
	if letter.MessageKind == events.KindEffectCommitted {
		return nil, ErrCommitted
	}
	clipped := len(body) < letter.Size
	p, err := latePayload(letter.MessageKind, body, clipped)
	if err != nil {
		return nil, err
	}
	if p == nil && clipped {
		return nil, ErrClipped
	}
	id := retryID(letter)
	if p != nil {
		return encode(events.Meta{
			ID: id, Source: sourceOf("deadletter"), Time: l.now(),
			CorrelationID: letter.CorrelationID, CausationID: letter.ID,
			Traceparent: letter.Traceparent, Tracestate: letter.Tracestate,
		}, p)
	}
	subject := letter.Subject
	noun, s, err := events.ParseSubject(subject)
	if err != nil {
		return nil, err
	}
	if noun == events.NounEpisodes { // stored under another subject than published
		subject = events.EpisodeSubject(s)
	}
	header := make(nats.Header, len(letter.Headers))
	for name, values := range letter.Headers {
		header[name] = values
	}
	switch {
	case !plain(header):
		// The stream may remember the first message; the event's own id stays.
		header.Set(jetstream.MsgIDHeader, id)
	case letter.CausationID != "":
		// Without an event id, this header is the id; where it was absent too,
		// the message is known by its place in the stream, which the letter
		// names as what caused it.
		header.Set(jetstream.MsgIDHeader, letter.CausationID)
	}
	return &nats.Msg{Subject: subject, Header: header, Data: body}, nil
}

// plain reports whether a message has no envelope of its own.
func plain(h nats.Header) bool {
	return first(h, "ce-id") == "" && first(h, "content-type") != event.ApplicationCloudEventsJSON
}

// latePayload turns a buried range into a late batch; nil for other kinds. Of a
// range whose body was clipped only the name is left: it is extracted again.
func latePayload(kind events.Kind, body []byte, clipped bool) (events.Payload, error) {
	switch kind {
	case events.KindTickIssued:
		var t events.TickIssued
		if clipped {
			return lateTick(body)
		}
		err := json.Unmarshal(body, &t)
		t.Batch = lateBatch(t.Batch)
		return t, err
	case events.KindCandidatesExtracted:
		var c events.CandidatesExtracted
		if clipped {
			return lateTick(body)
		}
		err := json.Unmarshal(body, &c)
		c.Batch = lateBatch(c.Batch)
		return c, err
	case events.KindDeltasDecided:
		var d events.DeltasDecided
		if clipped {
			return lateTick(body)
		}
		if err := json.Unmarshal(body, &d); err != nil || d.Command != nil {
			return nil, err
		}
		return events.CandidatesExtracted{
			Batch: lateBatch(d.Batch), SessionEnds: d.SessionEnds, Episodes: d.Episodes, Candidates: d.Candidates,
		}, nil
	}
	return nil, nil //nolint:nilnil // no payload means: as it was
}

func lateBatch(b events.Batch) events.Batch {
	b.Cause, b.Attempt, b.Stale, b.Skipped = events.CauseLate, 0, 0, ""
	return b
}

// lateTick reads the batch that begins a clipped body; nil where that is of a
// command, or names no range.
func lateTick(clipped []byte) (events.Payload, error) {
	members := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(clipped))
	_, _ = d.Token() // the brace
	for d.More() {
		var value json.RawMessage
		name, err := d.Token()
		if err != nil || d.Decode(&value) != nil {
			break // where it was clipped
		}
		if text, ok := name.(string); ok {
			members[text] = value
		}
	}
	whole, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	var t events.TickIssued
	if err := json.Unmarshal(whole, &t); err != nil {
		return nil, err
	}
	if t.Rule == events.RuleCommand || t.Range.Empty() || t.Validate() != nil {
		return nil, nil //nolint:nilnil,nilerr // no range that could be extracted again
	}
	t.Batch = lateBatch(t.Batch)
	return t, nil
}

// first reads a header however its publisher spelled its name.
func first(h nats.Header, name string) string {
	for n, values := range h {
		if strings.EqualFold(n, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}
