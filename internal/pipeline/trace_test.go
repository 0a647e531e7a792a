package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"palimpsest/pkg/events"
)

const (
	itsTrace   = "0af7651916cd43dd8448eb211c80319c"
	itsParent  = "00-" + itsTrace + "-b7ad6b7169203331-01"
	otherTrace = "1af7651916cd43dd8448eb211c80319c"
	other      = "00-" + otherTrace + "-c7ad6b7169203331-01"
)

// traced lets the runtimes of b tell their spans.
func (b *bench) traced() *tracetest.InMemoryExporter {
	told := tracetest.NewInMemoryExporter()
	b.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(told)).Tracer("test")
	return told
}

// sayIn publishes an episode in a trace.
func (b *bench) sayIn(content, traceparent string) {
	b.tb.Helper()
	pub := &broker{js: b.js, conn: b.conn, now: time.Now, timeout: patience}
	meta := events.Meta{ID: content, Source: "test", Traceparent: traceparent, Tracestate: "vendor=1"}
	if _, err := pub.Publish(b.context(), meta, said(user("ann"), content)); err != nil {
		b.tb.Fatal(err)
	}
}

// first reads the first message of a stream.
func (b *bench) first(name string) events.Meta {
	b.tb.Helper()
	stream, err := b.js.Stream(b.context(), name)
	if err != nil {
		b.tb.Fatal(err)
	}
	msg, err := stream.GetMsg(b.context(), 1)
	if err != nil {
		b.tb.Fatal(err)
	}
	meta, _, err := events.Decode(events.Raw{Subject: msg.Subject, Header: msg.Header, Body: msg.Data, Time: msg.Time})
	if err != nil {
		b.tb.Fatal(err)
	}
	return meta
}

// TestAttemptsAreSpans: each attempt at a message is a span of its trace, with the
// verdict and without the text of the error.
func TestAttemptsAreSpans(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	told := b.traced()
	var tries atomic.Int32
	_, stop := b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		if !strings.HasPrefix(in.Traceparent, "00-"+itsTrace) || in.Traceparent == itsParent {
			t.Errorf("the handler is given %s", in.Traceparent)
		}
		if tries.Add(1) < 3 {
			return nil, errors.New("hush: a secret")
		}
		return nil, Rejectf("too_loud", "content", "hush: a secret")
	}))
	b.sayIn("e1", itsParent)
	letter := b.deadLetters(1)[0]
	b.settled("EPISODES", "episodes")
	stop()
	var got []string
	for _, s := range told.GetSpans() {
		for _, e := range s.Events {
			got = append(got, s.Name+": "+e.Name)
		}
		if s.SpanContext.TraceID().String() != itsTrace || s.Parent.SpanID().String() != "b7ad6b7169203331" || s.Status.Code != codes.Error {
			t.Errorf("span %+v", s)
		}
		if text := fmt.Sprint(s.Attributes, s.Events, s.Status); strings.Contains(text, "hush") {
			t.Errorf("tells of the error: %s", text)
		}
	}
	if diff := cmp.Diff([]string{"process episodes: retry", "process episodes: retry", "process episodes: dead letter"}, got); diff != "" {
		t.Error(diff)
	}
	last := told.GetSpans()[2].SpanContext
	if want := fmt.Sprintf("00-%s-%s-01", itsTrace, last.SpanID()); letter.Traceparent != want || letter.Tracestate != "vendor=1" {
		t.Errorf("the letter is in %s, want %s", letter.Traceparent, want)
	}
}

// TestContinuedTrace: a payload that names a trace continues it, and links back to
// the span of its cause.
func TestContinuedTrace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	told := b.traced()
	_, stop := b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		return []events.Payload{events.CandidatesExtracted{Batch: tick(in.Scope, 1).Batch, Traceparent: other}}, nil
	}))
	b.sayIn("e1", itsParent)
	b.settled("EPISODES", "episodes")
	stop()
	spans := told.GetSpans()
	if len(spans) != 2 || spans[0].Name != "publish palimpsest.candidates" || spans[1].Name != "process episodes" {
		t.Fatalf("spans %+v", spans)
	}
	sent, handled := spans[0], spans[1]
	if sent.SpanContext.TraceID().String() != otherTrace || len(sent.Links) != 1 || !sent.Links[0].SpanContext.Equal(handled.SpanContext) {
		t.Errorf("span %+v", sent)
	}
	if want := fmt.Sprintf("00-%s-%s-01", otherTrace, sent.SpanContext.SpanID()); b.first("CANDIDATES").Traceparent != want {
		t.Errorf("sent in %s, want %s", b.first("CANDIDATES").Traceparent, want)
	}
}

// TestTracesPassThrough where nothing is traced.
func TestTracesPassThrough(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	_, stop := b.start(quickConfig(), onEpisode(func(ctx context.Context, in episode) ([]events.Payload, error) {
		if parent, state := TraceOf(ctx); parent != "" || state != "" {
			t.Errorf("the handler is in the trace %s", parent)
		}
		return []events.Payload{events.EpisodeStored{Header: events.Header{Scope: in.Scope.Fact()}, LastOrdinal: 1, StoredAt: in.Time}}, nil
	}))
	b.sayIn("e1", itsParent)
	b.settled("EPISODES", "episodes")
	stop()
	if got := b.first("STORED"); got.Traceparent != itsParent || got.Tracestate != "vendor=1" {
		t.Errorf("sent in %s, %s", got.Traceparent, got.Tracestate)
	}
}

// TestLettersOfHandlersAreObserved: a handler may bury a part of a message and
// go on with the rest.
func TestLettersOfHandlersAreObserved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	var mu sync.Mutex
	var deadLetters []string
	b.observer = func(o Observation) {
		mu.Lock()
		defer mu.Unlock()
		if o.Waited <= 0 {
			t.Errorf("waited %v", o.Waited)
		}
		deadLetters = append(deadLetters, o.Letters...)
	}
	_, stop := b.start(quickConfig(), onEpisode(func(_ context.Context, in episode) ([]events.Payload, error) {
		return []events.Payload{events.MessageBuried{
			Scope: in.Scope.Fact(), Service: "worker", Code: events.CodeFactConflict, Reason: "a conflict", BuriedAt: in.Time,
		}}, nil
	}))
	b.say(user("ann"), "e1")
	b.settled("EPISODES", "episodes")
	stop()
	if diff := cmp.Diff([]string{events.CodeFactConflict}, deadLetters); diff != "" {
		t.Error(diff)
	}
}

// TestBacklogIsToldOfEachConsumer, and the size of each stream.
func TestBacklogIsToldOfEachConsumer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.standard()
	held := make(chan struct{})
	cfg := quickConfig()
	cfg.Concurrency, cfg.Hold = 1, 1
	rt, stop := b.start(cfg, onEpisode(func(ctx context.Context, _ episode) ([]events.Payload, error) {
		select {
		case <-held:
		case <-ctx.Done():
		}
		return nil, nil
	}))
	for i := range 3 {
		b.say(user("ann"), fmt.Sprint(i))
	}
	b.eventually("two wait behind one", func() bool {
		all, err := rt.Progress(b.context())
		return err == nil && len(all) == 1 && all[0].Stream == "EPISODES" && all[0].Consumer == "episodes" &&
			all[0].Pending == 2 && all[0].Unacked == 1 && all[0].Runnable == 3
	})
	sizes, err := rt.Streams(b.context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range sizes {
		found = found || s.Stream == "EPISODES" && s.Messages == 3 && s.Bytes > 0
	}
	if !found {
		t.Errorf("sizes %+v", sizes)
	}
	close(held)
	b.settled("EPISODES", "episodes")
	stop()
}
