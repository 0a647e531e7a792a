package query

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"palimpsest/internal/memory"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
)

// ndjson is the media type of one JSON object per line.
const ndjson = "application/x-ndjson"

func (s *Service) streamRoutes(a huma.API) {
	stream := func(id, path, summary string) huma.Operation {
		return huma.Operation{
			OperationID: id, Method: http.MethodGet, Path: path, Summary: summary, Tags: []string{"operations"},
			Responses: map[string]*huma.Response{"200": {
				Description: "One JSON object per line.",
				Content:     map[string]*huma.MediaType{ndjson: {Schema: &huma.Schema{Type: "object"}}},
			}},
		}
	}
	replay := stream("audit", "/v1/audit", "Replay the effects as they were committed; as server-sent events, follow them")
	replay.Responses["200"].Content[eventStream] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	register(s, a, replay, s.audit)
	register(s, a, stream("export", "/v1/export", "Export what is known in canonical form"), s.export)
}

type exportInput struct {
	SelectorParams
	Content bool `query:"content" doc:"Leave out wall-clock fields, to compare two installations."`
}

func (s *Service) export(ctx context.Context, in *exportInput) (*huma.StreamResponse, error) {
	sel, err := s.factSelector(in.SelectorParams)
	if err != nil {
		return nil, err
	}
	return s.lines(func(ctx context.Context, write func(any) error) error {
		lines, err := s.exported(ctx, sel, memory.ModeOf(in.Content))
		if err != nil {
			return err
		}
		for _, l := range lines {
			if err := write(json.RawMessage(l.JSON)); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// exported holds the whole export: it is sorted by kind before scope, and the
// store is read scope by scope.
func (s *Service) exported(ctx context.Context, sel scope.Selector, mode memory.ExportMode) ([]memory.Line, error) {
	var all []memory.Line
	var failed error
	err := s.deps.Store.Scopes(ctx, sel, func(fact scope.Scope) bool {
		snapshot, err := s.deps.Store.Snapshot(ctx, fact)
		if err == nil {
			var lines []memory.Line
			lines, err = memory.Export(snapshot, mode)
			all = append(all, lines...)
		}
		failed = err
		return err == nil
	})
	memory.SortLines(all)
	return all, errors.Join(failed, err)
}

// lines streams NDJSON. An error before the first byte is sent is a problem
// document; a later one cannot change the status, so the connection is cut and the
// client detects an incomplete answer.
func (s *Service) lines(produce func(ctx context.Context, write func(any) error) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", ndjson)
		sent := newCounted(c)
		defer sent.done()
		out := bufio.NewWriterSize(sent, 64<<10)
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		err := produce(c.Context(), enc.Encode)
		if err == nil {
			err = out.Flush()
		}
		if err == nil {
			return
		}
		if sent.bytes > 0 || c.Context().Err() != nil {
			s.failed(c.Context(), err)
			panic(http.ErrAbortHandler)
		}
		s.tell(c, err)
	}}
}

// tell answers with the problem that err stands for.
func (s *Service) tell(c huma.Context, err error) {
	err = s.problem(c.Context(), err)
	var more huma.HeadersError
	if errors.As(err, &more) {
		for name, values := range more.GetHeaders() {
			c.SetHeader(name, values[0])
		}
	}
	var p *api.Problem
	errors.As(err, &p)
	_, w := humago.Unwrap(c)
	writeProblem(w, p)
}

// sendPatience is how long a client may go without reading its answer.
const sendPatience = 30 * time.Second

// counted counts the bytes that were sent. A write to a client that has stopped
// reading fails after [sendPatience], so the answer does not stay in memory.
type counted struct {
	to      io.Writer
	control *http.ResponseController
	bytes   int
}

func newCounted(c huma.Context) *counted {
	_, w := humago.Unwrap(c)
	return &counted{to: w, control: http.NewResponseController(w)}
}

func (w *counted) Write(b []byte) (int, error) {
	if err := w.control.SetWriteDeadline(time.Now().Add(sendPatience)); err != nil {
		return 0, err
	}
	n, err := w.to.Write(b)
	w.bytes += n
	return n, err
}

// Flush sends what was written so far.
func (w *counted) Flush() error {
	if err := w.control.SetWriteDeadline(time.Now().Add(sendPatience)); err != nil {
		return err
	}
	return w.control.Flush()
}

// done leaves the connection to the next request.
func (w *counted) done() { _ = w.control.SetWriteDeadline(time.Time{}) }
