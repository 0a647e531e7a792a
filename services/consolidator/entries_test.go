package consolidator

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/cursor"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// cursors keeps cursors in a map.
type cursors map[string]cursor.Cursor

func (c cursors) ReadCursors(_ context.Context, readers ...string) ([]cursor.Cursor, error) {
	out := make([]cursor.Cursor, len(readers))
	for i, r := range readers {
		out[i] = c[r]
	}
	return out, nil
}

func (c cursors) SetCursor(_ context.Context, reader string, _ uint64, at cursor.Cursor) error {
	c[reader] = at
	return nil
}

// scopes is a store of several fact scopes.
type scopes map[scope.Scope]*memoryStore

func (s scopes) State(ctx context.Context, fact scope.Scope) (memory.State, error) {
	state, err := s[fact].State(ctx, fact)
	state.Scope = fact
	return state, err
}

func (s scopes) ReadWhole(_ context.Context, read func() error) error { return read() }

func (s scopes) Apply(ctx context.Context, e events.EffectCommitted, sequence uint64) error {
	return s[e.Scope].Apply(ctx, e, sequence)
}

func (s scopes) Advance(ctx context.Context, fact scope.Scope) error {
	return s[fact].Advance(ctx, fact)
}

func (s scopes) Skipped(ctx context.Context, fact scope.Scope, rule string) ([]events.Range, error) {
	return s[fact].Skipped(ctx, fact, rule)
}

func (s scopes) Touch(ctx context.Context, fact scope.Scope, ids []string, at time.Time) error {
	return s[fact].Touch(ctx, fact, ids, at)
}

// entries are effects as a reader of AUDIT gets them.
func entries(t testing.TB, effects ...events.Event[events.EffectCommitted]) []*pipeline.Entry {
	t.Helper()
	out := make([]*pipeline.Entry, len(effects))
	for i, e := range effects {
		subject, header, body, err := events.Encode(e.Meta, e.Data)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = entry(e.Sequence, subject, header, body)
	}
	return out
}

func entry(sequence uint64, subject string, header nats.Header, body []byte) *pipeline.Entry {
	return pipeline.NewEntry(events.Raw{
		Subject: subject, Header: header, Body: body, Stream: auditStream, StreamID: "AUDIT@1", Sequence: sequence, Time: noon, Delivery: 1,
	})
}

// of is an effect as another scope has it.
func of(fact scope.Scope, e events.Event[events.EffectCommitted]) events.Event[events.EffectCommitted] {
	e.Scope, e.Data.Scope = fact, fact
	e.ID, e.Sequence = fact.User+e.ID, e.Sequence+1
	return e
}

// replayed is AUDIT from end to end, two messages at a time.
type replayed func() []*pipeline.Entry

var wholeCursor = cursor.Cursor{Stream: "AUDIT@1", Sequence: 100}

func (r replayed) Read(_ context.Context, after uint64, yield func([]*pipeline.Entry) error) (cursor.Cursor, error) {
	behind := slices.DeleteFunc(r(), func(e *pipeline.Entry) bool { return e.Meta.Sequence <= after })
	for batch := range slices.Chunk(behind, 2) {
		if err := yield(batch); err != nil {
			return wholeCursor, err
		}
	}
	return wholeCursor, nil
}

// errs are the errors of entries: "" for none, "refused" or "retried".
func errs(in []*pipeline.Entry) []string {
	out := make([]string, len(in))
	for i, e := range in {
		switch {
		case pipeline.IsRefused(e.Err):
			out[i] = "refused"
		case e.Err != nil:
			out[i] = "retried"
		}
	}
	return out
}
