package pipeline

import (
	"context"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/pkg/events"
)

// tracing makes the spans of the runtime. Its zero value makes none, and forwards
// the traces of the messages.
//
// An attempt at a message is a span in the message's trace, and the parent of the
// spans of its payloads. A handler gets the context of its span in place of the
// message's, so that a trace context that it stores leads to that span.
type tracing struct{ tracer trace.Tracer }

// w3c reads and writes trace contexts.
var w3c propagation.TraceContext

// TraceOf returns the W3C trace context of ctx, for a message about the work in it;
// both parts are empty outside a trace.
func TraceOf(ctx context.Context) (traceparent, tracestate string) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return "", ""
	}
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier["traceparent"], carrier["tracestate"]
}

// Link links the span of the handler that ctx belongs to with the traces of what
// it handles together. It costs nothing outside a trace that is recorded.
func Link(ctx context.Context, traceparents ...string) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	seen := map[trace.TraceID]bool{span.SpanContext().TraceID(): true}
	for _, text := range traceparents {
		if there := contextOf(text, ""); there.IsValid() && !seen[there.TraceID()] {
			seen[there.TraceID()] = true
			span.AddLink(trace.Link{SpanContext: there})
		}
	}
}

func contextOf(traceparent, tracestate string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent, "tracestate": tracestate})
	return trace.SpanContextFromContext(ctx)
}

// MessageAttributes describes a message by the semantic conventions of messaging.
// Subjects name users, so the destination is the kind of subject; content and
// scope are left out.
func MessageAttributes(operation string, meta events.Meta) []attribute.KeyValue {
	return []attribute.KeyValue{
		semconv.MessagingSystemKey.String("nats"),
		semconv.MessagingOperationName(operation),
		semconv.MessagingDestinationName(destination(meta.Kind)),
		semconv.MessagingMessageID(meta.ID),
		semconv.MessagingMessageConversationID(meta.CorrelationID),
	}
}

// destination is the part of a kind's subjects without the scope.
func destination(k events.Kind) string { return "palimpsest." + k.Noun() }

// spot is where a message is handled: the stage, and its consumer.
type spot struct{ point, group string }

func (w *worker) spot() spot { return spot{point: w.point, group: w.binding.name} }

// process begins the span of an attempt at a message of size bytes; nil where
// nothing is traced. From then on meta carries the span.
func (t tracing) process(ctx context.Context, at spot, meta *events.Meta, size int) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, nil
	}
	parent := contextOf(meta.Traceparent, meta.Tracestate)
	ctx, span := t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, parent), "process "+at.point, trace.WithSpanKind(trace.SpanKindConsumer))
	if span.IsRecording() {
		span.SetAttributes(MessageAttributes("process", *meta)...)
		span.SetAttributes(
			semconv.MessagingOperationTypeProcess, semconv.MessagingConsumerGroupName(at.group),
			semconv.MessagingMessageBodySize(size), attribute.Int("palimpsest.tries", meta.Delivery),
			attribute.Int64("palimpsest.sequence", int64(meta.Sequence)),
		)
	}
	meta.Traceparent, meta.Tracestate = TraceOf(ctx)
	return ctx, span
}

// publish begins the span of a message that is sent; the message carries it. If the
// message continues another trace than that of ctx, the span begins in that trace and
// links to the span of ctx.
func (t tracing) publish(ctx context.Context, meta *events.Meta, p events.Payload) trace.Span {
	if t.tracer == nil {
		return nil
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer)}
	here := trace.SpanContextFromContext(ctx)
	if there := contextOf(meta.Traceparent, meta.Tracestate); there.IsValid() && there.TraceID() != here.TraceID() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, there)
		if here.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: here}))
		}
	}
	meta.Kind = p.Kind()
	ctx, span := t.tracer.Start(ctx, "publish "+destination(meta.Kind), options...)
	if span.IsRecording() {
		span.SetAttributes(MessageAttributes("publish", *meta)...)
		span.SetAttributes(semconv.MessagingOperationTypeSend)
	}
	meta.Traceparent, meta.Tracestate = TraceOf(ctx)
	return span
}

// outgoing is a message with the span of its way to the stream, nil where
// nothing is traced.
type outgoing struct {
	msg  *nats.Msg
	span trace.Span
}

// sent ends the span.
func (o outgoing) sent(err error) {
	if o.span == nil {
		return
	}
	if err != nil {
		o.span.SetStatus(codes.Error, "not taken by the stream")
	}
	o.span.End()
}

// endProcess ends the span of an attempt with its verdict. An error's text may quote
// content, so the span has only its code; the log has the rest.
func endProcess(span trace.Span, o Observation, v verdict) {
	if span == nil {
		return
	}
	span.SetAttributes(attribute.String("palimpsest.verdict", o.Verdict))
	switch action(o.Verdict) {
	case actBury:
		addLetter(span, o.Code)
		span.SetAttributes(semconv.ErrorTypeKey.String(o.Code))
		span.SetStatus(codes.Error, "buried")
	case actNak, actWait:
		kind := "failed"
		if o.Panicked {
			kind = "panicked"
		}
		span.AddEvent("retry", trace.WithAttributes(attribute.Int64("palimpsest.delay_ms", v.delay.Milliseconds())))
		span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		span.SetStatus(codes.Error, kind)
	case actAck, actHandle:
	}
	for _, code := range o.Letters {
		addLetter(span, code)
	}
	span.End()
}

func addLetter(span trace.Span, code string) {
	span.AddEvent("dead letter", trace.WithAttributes(attribute.String("palimpsest.code", code)))
}

// run begins a span for each message of a run, in the trace of each. The last
// one's is that of the handler, and links to the others.
func (t tracing) run(ctx context.Context, at spot, n int, message func(i int) (meta *events.Meta, size int)) ([]context.Context, []trace.Span) {
	ctxs, spans := make([]context.Context, n), make([]trace.Span, n)
	for i := range n {
		meta, size := message(i)
		ctxs[i], spans[i] = t.process(ctx, at, meta, size)
	}
	if t.tracer == nil {
		return ctxs, nil
	}
	for i, span := range spans {
		span.SetAttributes(semconv.MessagingBatchMessageCount(n))
		if i < n-1 {
			spans[n-1].AddLink(trace.Link{SpanContext: span.SpanContext()})
		}
	}
	return ctxs, spans
}

// endRun ends the spans of a run that got one verdict.
func endRun(spans []trace.Span, o Observation) {
	for _, span := range spans {
		endProcess(span, o, verdict{})
	}
}
