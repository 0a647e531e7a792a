package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/pkg/events"
)

// Retry sends the message of a letter once more and then deletes the letter. A
// range (a tick, its candidates or its deltas) runs as a late batch, which
// moves no watermark and loses against later event times; deltas are decided
// anew from their candidates. Anything else is published as it was, under its
// own id.
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
		return fmt.Errorf("pipeline: retry dead letter %d: %w", sequence, err)
	}
	ack, err := l.broker.send(ctx, msg)
	if err != nil {
		return err
	}
	if ack.Duplicate {
		return fmt.Errorf("pipeline: retry dead letter %d: its stream still remembers the message: try again later", sequence)
	}
	if err := stream.SecureDeleteMsg(ctx, sequence); err != nil {
		return fmt.Errorf("pipeline: drop dead letter %d after its retry: %w", sequence, err)
	}
	return nil
}

// body is the whole message. Of a large one the letter has the first part only;
// its stream may still hold the rest.
func (l *Letters) body(ctx context.Context, letter Letter) ([]byte, error) {
	if !letter.Truncated {
		return letter.Data, nil
	}
	stream, err := l.js.Stream(ctx, letter.Stream)
	if err != nil {
		return nil, fmt.Errorf("look for the whole body: %w", err)
	}
	msg, err := stream.GetMsg(ctx, letter.MessageBuried.Sequence)
	if err != nil {
		return nil, fmt.Errorf("look for the whole body: %w", err)
	}
	if sum := sha256.Sum256(msg.Data); hex.EncodeToString(sum[:]) != letter.SHA256 {
		return nil, fmt.Errorf("%s holds another message at %d", letter.Stream, letter.MessageBuried.Sequence)
	}
	return msg.Data, nil
}

// again is the message to publish.
func (l *Letters) again(letter Letter, body []byte) (*nats.Msg, error) {
	p, err := latePayload(letter.MessageKind, body)
	if err != nil {
		return nil, err
	}
	id := events.HashID("retry", letter.ID, strconv.FormatUint(letter.Sequence, 10))
	if p != nil {
		return encode(events.Meta{
			ID: id, Source: sourceOf("deadletter"), Time: l.now(),
			CorrelationID: letter.CorrelationID, CausationID: letter.ID,
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
	switch plain := first(header, "ce-id") == "" && first(header, "content-type") != event.ApplicationCloudEventsJSON; {
	case !plain:
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

// latePayload turns a buried range into a late batch; nil for other kinds.
func latePayload(kind events.Kind, body []byte) (events.Payload, error) {
	late := func(b events.Batch) events.Batch {
		b.Cause, b.Attempt, b.Stale, b.Skipped = events.CauseLate, 0, 0, ""
		return b
	}
	switch kind {
	case events.KindTickIssued:
		var t events.TickIssued
		err := json.Unmarshal(body, &t)
		t.Batch = late(t.Batch)
		return t, err
	case events.KindCandidatesExtracted:
		var c events.CandidatesExtracted
		err := json.Unmarshal(body, &c)
		c.Batch = late(c.Batch)
		return c, err
	case events.KindDeltasDecided:
		var d events.DeltasDecided
		if err := json.Unmarshal(body, &d); err != nil || d.Command != nil {
			return nil, err
		}
		return events.CandidatesExtracted{
			Batch: late(d.Batch), SessionEnds: d.SessionEnds, Episodes: d.Episodes, Candidates: d.Candidates,
		}, nil
	}
	return nil, nil //nolint:nilnil // no payload means: as it was
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
