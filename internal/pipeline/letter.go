package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"palimpsest/internal/failpoint"
	"palimpsest/pkg/events"
)

// The bounds of a dead letter, in bytes. Of a larger body it keeps the first part and
// the hash.
const (
	maxLetterData   = 64 << 10
	clippedData     = 4 << 10
	maxLetterText   = 4 << 10 // the reason, and each cause
	maxLetterCauses = 16
	maxLetterHeader = 32 << 10 // all headers
)

// letterID is the identity of a dead letter: burying a message again gives the
// same.
func letterID(stream string, sequence uint64, service string) string {
	return events.HashID(stream, strconv.FormatUint(sequence, 10), service)
}

// newLetter writes the dead letter of a message.
func newLetter(service string, c conclusion, now time.Time) events.MessageBuried {
	l := events.MessageBuried{
		Scope: c.in.meta.Scope, Service: service,
		Stream: c.raw.Stream, Sequence: c.raw.Sequence, Subject: text(c.raw.Subject), MessageKind: c.in.meta.Kind,
		Code: c.verdict.code, Field: text(c.verdict.field), Reason: text(c.verdict.reason),
		Causes: causes(c.attempt.err), Attempts: c.attempt.tries, Headers: clipHeaders(c.raw.Header),
		Data: c.raw.Body, Size: len(c.raw.Body), SHA256: hashOf(c.raw.Body), BuriedAt: now,
	}
	if l.Code == "" {
		l.Code = events.CodeInvalidField
	}
	if l.Reason == "" {
		l.Reason = l.Code
	}
	withhold(&l)
	if len(l.Data) > maxLetterData {
		l.Data, l.Truncated = l.Data[:clippedData], true
	}
	return l
}

// bury publishes the dead letter of a judged message.
func (rt *Runtime) bury(ctx context.Context, log *slog.Logger, service, point string, c conclusion) (events.MessageBuried, error) {
	l := newLetter(service, c, rt.now())
	if err := rt.broker.bury(ctx, sourceOf(service), c.in.meta, l); err != nil {
		return l, err
	}
	failpoint.Reach(point, failpoint.Buried)
	log.WarnContext(ctx, "buried", "id", c.in.meta.ID, "stream", c.raw.Stream, "sequence", c.raw.Sequence,
		"code", c.verdict.code, "field", c.verdict.field, "reason", l.Reason)
	return l, nil
}

// text makes any bytes fit to be written and read by people.
func text(s string) string {
	if len(s) > maxLetterText {
		s = s[:maxLetterText] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// causes is the error chain, outermost first.
func causes(err error) []string {
	var out []string
	for ; err != nil && len(out) < maxLetterCauses; err = errors.Unwrap(err) {
		if s := text(err.Error()); len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

// clipHeaders keeps headers within bounds, and leaves out those that the broker
// adds for its own use.
func clipHeaders(h map[string][]string) map[string][]string {
	out := make(map[string][]string, len(h))
	left := maxLetterHeader
	for name, values := range h {
		if strings.EqualFold(name, "Nats-Pin-Id") {
			continue
		}
		for _, v := range values {
			if left -= len(name) + len(v); left < 0 {
				return out
			}
			out[text(name)] = append(out[text(name)], text(v))
		}
	}
	return out
}
