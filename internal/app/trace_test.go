package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/internal/embed/local"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// spans is what exporters were given.
type spans struct {
	mu      sync.Mutex
	list    []sdktrace.ReadOnlySpan
	changed chan struct{}
}

func newSpans() *spans { return &spans{changed: make(chan struct{}, 1)} }

// ExportSpans implements [sdktrace.SpanExporter].
func (s *spans) ExportSpans(_ context.Context, ended []sdktrace.ReadOnlySpan) error {
	s.mu.Lock()
	s.list = append(s.list, ended...)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

// Shutdown implements [sdktrace.SpanExporter].
func (*spans) Shutdown(context.Context) error { return nil }

// tracer is that of one process, which tells s.
func (s *spans) tracer(t *testing.T, process string) trace.Tracer {
	t.Helper()
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(s), sdktrace.WithResource(resource.NewSchemaless(semconv.ServiceName(process))))
	t.Cleanup(func() { _ = p.Shutdown(context.WithoutCancel(t.Context())) })
	return p.Tracer("palimpsest")
}

// await returns once a span meets ok.
func (s *spans) await(t *testing.T, what string, ok func(sdktrace.ReadOnlySpan) bool) sdktrace.ReadOnlySpan {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		i := slices.IndexFunc(s.list, ok)
		if i >= 0 {
			defer s.mu.Unlock()
			return s.list[i]
		}
		s.mu.Unlock()
		select {
		case <-s.changed:
		case <-late:
			t.Fatalf("no span: %s; there are:\n%s", what, s)
		}
	}
}

func (s *spans) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, span := range s.list {
		_, _ = fmt.Fprintf(&b, "%s %s ◀ %s  %s\n", span.SpanContext().TraceID(), span.SpanContext().SpanID(), span.Parent().SpanID(), span.Name())
	}
	return b.String()
}

// way is the spans from the one that began it all to a span, with the process
// that each ran in.
func (s *spans) way(to sdktrace.ReadOnlySpan) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for at := &to; at != nil; {
		process, _ := (*at).Resource().Set().Value(semconv.ServiceNameKey)
		out = append(out, process.AsString()+": "+(*at).Name())
		parent := (*at).Parent().SpanID()
		at = nil
		for i := range s.list {
			if s.list[i].SpanContext().SpanID() == parent {
				at = &s.list[i]
			}
		}
	}
	slices.Reverse(out)
	return out
}

const (
	itsTrace  = "0af7651916cd43dd8448eb211c80319c"
	itsParent = "00-" + itsTrace + "-b7ad6b7169203331-01"
)

func inTrace(id, name string) func(sdktrace.ReadOnlySpan) bool {
	return func(s sdktrace.ReadOnlySpan) bool {
		return s.Name() == name && s.SpanContext().TraceID().String() == id
	}
}

// silent fails if a span contains a secret: content, or a name of the scope.
func (s *spans) silent(t *testing.T, secrets ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range s.list {
		text := fmt.Sprint(span.Name(), span.Attributes(), span.Events(), span.Status())
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s tells of %q: %s", span.Name(), secret, text)
			}
		}
	}
}

func TestOneTraceFromPublishToAppliedFact(t *testing.T) {
	t.Parallel()
	told := newSpans()
	h, stop := openAltered(t, loopback(t.TempDir()), func(h *process) { h.tracer = told.tracer(t, "palimpsest") }, func(*process) {})
	defer stop()
	eventually(t, "the sweep of the start is over", func() error { return swept(h) })
	body := `{"user": "nora", "session": "s1", "messages": [{"role": "user", "content": "I work as a hydrologist at Fenwick Labs."}]}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.http.URL()+"/v1/episodes", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", itsParent)
	r.Header.Set("Tracestate", "vendor=1")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()

	applied := told.await(t, "apply", inTrace(itsTrace, "apply"))
	want := []string{
		"POST /v1/episodes", "publish palimpsest.episodes", "process ingest", "publish palimpsest.stored", "process scheduler-stored",
		"publish palimpsest.ticks", "process extractor-ticks-rules", "publish palimpsest.candidates", "process decider-candidates-rules",
		"publish palimpsest.deltas", "process consolidator-deltas-rules", "apply",
	}
	for i, name := range want {
		want[i] = "palimpsest: " + name
	}
	told.await(t, "the request", inTrace(itsTrace, "POST /v1/episodes"))
	told.await(t, "the commit's handler", inTrace(itsTrace, "process consolidator-deltas-rules"))
	if diff := cmp.Diff(want, told.way(applied)); diff != "" {
		t.Error(diff)
	}
	if state := applied.SpanContext().TraceState().String(); state != "vendor=1" {
		t.Errorf("trace state %q", state)
	}
	commit := told.await(t, "commit", inTrace(itsTrace, "commit"))
	for _, name := range []string{"process scheduler-audit", "process consolidator-projector", "process consolidator-auditlog"} {
		if next := told.await(t, name, inTrace(itsTrace, name)); next.Parent().SpanID() != commit.SpanContext().SpanID() {
			t.Errorf("%s does not follow the commit:\n%s", name, told)
		}
	}
	search(t, h, told)
	told.silent(t, "nora", "hydrologist", "Fenwick")
}

// search asks, and sees each channel as a span of the request.
func search(t *testing.T, h *process, told *spans) {
	t.Helper()
	const id = "1af7651916cd43dd8448eb211c80319c"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.http.URL()+"/v1/search", strings.NewReader(`{"user": "nora", "text": "hydrologist"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Traceparent", "00-"+id+"-b7ad6b7169203331-01")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	asked := told.await(t, "search", inTrace(id, "POST /v1/search"))
	for _, name := range []string{"memory search_text", "memory search_vector", "embedder embed"} {
		if s := told.await(t, name, inTrace(id, name)); s.Parent().SpanID() != asked.SpanContext().SpanID() {
			t.Errorf("%s is not part of the request", name)
		}
	}
}

// TestOneTraceAcrossProcesses joins six processes, each with a runtime, a tracer and
// an exporter of its own, by nothing but the broker.
func TestOneTraceAcrossProcesses(t *testing.T) {
	t.Parallel()
	ground, conn := newGround(t)
	told := newSpans()
	for _, p := range services {
		h := runPart(t, ground, p, told)
		if p.name == "scheduler" {
			eventually(t, "the sweep of the start is over", func() error { return swept(h) })
		}
	}
	publish(t, conn, "e1", "I live in Lisbon.", itsParent)
	applied := told.await(t, "apply", inTrace(itsTrace, "apply"))
	told.await(t, "the commit's handler", inTrace(itsTrace, "process consolidator-deltas-rules"))
	want := []string{
		"ingest: process ingest", "ingest: publish palimpsest.stored",
		"scheduler: process scheduler-stored", "scheduler: publish palimpsest.ticks",
		"extractor: process extractor-ticks-rules", "extractor: publish palimpsest.candidates",
		"decider: process decider-candidates-rules", "decider: publish palimpsest.deltas",
		"consolidator: process consolidator-deltas-rules", "consolidator: apply",
	}
	if diff := cmp.Diff(want, told.way(applied)); diff != "" {
		t.Error(diff)
	}

	told.silent(t, "nora", "Lisbon")
}

func publish(t *testing.T, conn *nats.Conn, id, content, traceparent string) {
	t.Helper()
	subject, header, body, err := events.Encode(events.Meta{ID: id, Source: "test", Traceparent: traceparent}, events.EpisodeRecorded{
		Scope: scope.Scope{Project: "default", User: "nora", Session: "s1"}, Role: events.RoleUser, Content: content,
	})
	if err != nil {
		t.Fatal(err)
	}
	msg := &nats.Msg{Subject: subject, Header: header, Data: body}
	if _, err := conn.RequestMsgWithContext(t.Context(), msg); err != nil { // which the stream answers
		t.Fatal(err)
	}
}

// TestRangeOfTwoTraces: the episodes of one user that wait at a time are one range.
// The span of its extraction is in the trace of each episode or links to it. Later
// spans go on with the trace of the newest episode.
func TestRangeOfTwoTraces(t *testing.T) {
	t.Parallel()
	const other = "2af7651916cd43dd8448eb211c80319c"
	ground, conn := newGround(t)
	publish(t, conn, "e1", "I live in Lisbon.", "00-"+other+"-b7ad6b7169203331-01")
	publish(t, conn, "e2", "I work as a baker.", itsParent)
	told := newSpans()
	ingest := slices.IndexFunc(services, func(p service) bool { return p.name == "ingest" })
	runPart(t, ground, services[ingest], told)
	for _, id := range []string{other, itsTrace} {
		told.await(t, "an episode is stored", inTrace(id, "process ingest"))
	}
	for i, p := range services {
		if i != ingest {
			runPart(t, ground, p, told)
		}
	}
	extracted := told.await(t, "the range", func(s sdktrace.ReadOnlySpan) bool { return s.Name() == "process extractor-ticks-rules" })
	traces := []string{extracted.SpanContext().TraceID().String()}
	for _, l := range extracted.Links() {
		traces = append(traces, l.SpanContext.TraceID().String())
	}
	if !slices.Contains(traces, other) || !slices.Contains(traces, itsTrace) {
		t.Errorf("the extraction belongs to %v:\n%s", traces, told)
	}
	for _, name := range []string{"publish palimpsest.candidates", "apply"} {
		told.await(t, name, inTrace(itsTrace, name))
	}
}

// newGround is what processes share: a broker, a store and an audit log.
func newGround(t *testing.T) (*process, *nats.Conn) {
	t.Helper()
	ground := &process{target: whole(), cfg: loopback(t.TempDir()), log: slog.New(slog.DiscardHandler), now: time.Now, embedder: local.New()}
	for _, step := range []func(context.Context) error{ground.openStores, ground.connect} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := ground.shut(); err != nil {
			t.Error(err)
		}
	})
	conn, err := nats.Connect(ground.streams.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return ground, conn
}

// runPart runs one service on the ground that all share, until the test ends.
func runPart(t *testing.T, ground *process, p service, told *spans) *process {
	t.Helper()
	h := &process{
		target: alone(p.name), cfg: ground.cfg, log: ground.log, now: ground.now, embedder: ground.embedder,
		streams: ground.streams, store: ground.store, tracer: told.tracer(t, p.name),
	}
	if h.target.auditLog() {
		h.auditLog = ground.auditLog
	}
	if err := h.wire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- h.run(ctx, func() {}) }()
	t.Cleanup(func() {
		cancel()
		if err := receive(t, "the end of "+p.name, done); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	})
	return h
}

// swept is an error until the scheduler of a process has swept: a sweep may find what
// is due before the message about it is handled.
func swept(h *process) error {
	for _, s := range h.runtime.Stats() {
		if s.Stage == "scheduler-sweep" && s.Handled > 0 {
			return nil
		}
	}
	return errors.New("no sweep yet")
}
