package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// ErrEnded: the server ended a stream that it would have gone on with; what
// comes next is read behind the last sequence.
var ErrEnded = errors.New("the server ended the stream")

// silence is how long a server that is followed may say nothing at all. It sends
// a heartbeat four times as often.
const silence = time.Minute

// ReplayAudit narrows a replay. An empty member narrows nothing.
type ReplayAudit struct {
	After uint64 // exclusive
	Until uint64 // inclusive
	// From (inclusive) and To (exclusive) bound when an effect was committed.
	From, To time.Time
	// Kinds keeps effects that hold a delta of one of them: add, update, delete,
	// noop.
	Kinds []string
	// Filters keeps effects that hold a delta of those kinds that matches: a
	// filter on the fields of audit records; nil keeps all.
	Filters json.RawMessage
	Limit   int
	// Follow continues with later effects, unless Until or To bounds it.
	Follow bool
}

// Audit replays the effects after a sequence, up to the newest one of now.
func (c *Client) Audit(ctx context.Context, sel scope.Selector, after uint64) iter.Seq2[api.AuditLine, error] {
	return c.Replay(ctx, sel, ReplayAudit{After: after})
}

// Replay returns effects as they were committed. An error is the last that it
// yields; reading goes on behind the last sequence. It is an [api.Problem] of
// code trimmed where what was asked for is kept no more.
func (c *Client) Replay(ctx context.Context, sel scope.Selector, r ReplayAudit) iter.Seq2[api.AuditLine, error] {
	lines := func(ctx context.Context) iter.Seq2[[]byte, error] { return c.stream(ctx, auditPath, r.query(sel)) }
	if r.Follow {
		lines = func(ctx context.Context) iter.Seq2[[]byte, error] { return c.events(ctx, auditPath, r.query(sel)) }
	}
	return func(yield func(api.AuditLine, error) bool) {
		for text, err := range lines(ctx) {
			var line api.AuditLine
			if err == nil {
				err = json.Unmarshal(text, &line)
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

const auditPath = "/v1/audit"

func (r ReplayAudit) query(sel scope.Selector) url.Values {
	query := selector(sel)
	for name, n := range map[string]uint64{"after": r.After, "until": r.Until, "limit": uint64(max(r.Limit, 0))} {
		if n > 0 {
			query.Set(name, strconv.FormatUint(n, 10))
		}
	}
	query = instants(query, r.From, r.To)
	for _, kind := range r.Kinds {
		query.Add("kind", kind)
	}
	if len(r.Filters) > 0 {
		query.Set("filters", string(r.Filters))
	}
	return query
}

// events yields the data of server-sent events until the server says that
// nothing follows. A server that falls silent is given up.
func (c *Client) events(ctx context.Context, path string, query url.Values) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing came for %s", silence)) })
		defer watch.Stop()
		res, err := c.send(ctx, request{
			method: http.MethodGet, path: path, query: query, header: http.Header{"Accept": {"text/event-stream"}},
		})
		if err != nil {
			yield(nil, err)
			return
		}
		defer res.Body.Close() //nolint:errcheck // nothing to do about it
		for e, err := range readEvents(heard{res.Body, watch}) {
			switch {
			case err != nil && context.Cause(ctx) != nil:
				yield(nil, fmt.Errorf("read %s: %w", path, context.Cause(ctx)))
			case err != nil:
				yield(nil, fmt.Errorf("read %s: %w", path, err))
			case e.kind == "end":
				return
			case e.kind == "problem":
				yield(nil, told(e.data))
				return
			case e.kind != "" && e.kind != "message":
				continue // of a newer server
			}
			if err != nil || !yield(e.data, nil) {
				return
			}
		}
	}
}

// told is the problem that ended a stream.
func told(text []byte) error {
	p := new(api.Problem)
	if err := json.Unmarshal(text, p); err != nil {
		return fmt.Errorf("read %s: the stream ended with %.256q", auditPath, text)
	}
	return p
}

// heard puts off the end of patience with each byte.
type heard struct {
	io.Reader
	watch *time.Timer
}

func (h heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		h.watch.Reset(silence)
	}
	return n, err
}
