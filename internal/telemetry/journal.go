package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"palimpsest/internal/audit"
	"palimpsest/internal/embed"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

// Journal returns j with its commits timed. In a recorded trace a commit is a
// span, and the readers of the effect continue it.
func (m *Metrics) Journal(j audit.Journal) audit.Journal {
	t := &timedJournal{Journal: j, append: m.backends.operation(backendJournal, "append")}
	t.append.span, t.append.kind = "commit", trace.SpanKindProducer
	return t
}

type timedJournal struct {
	audit.Journal
	append operation
}

// Append implements [audit.Appender].
func (j *timedJournal) Append(ctx context.Context, meta events.Meta, effect events.EffectCommitted, after uint64) (uint64, error) {
	ctx, t := j.append.begin(ctx)
	if t.recording() {
		meta.Traceparent, meta.Tracestate = pipeline.TraceOf(ctx)
		t.set(describe(effect)...)
		t.set(pipeline.MessageAttributes("publish", meta)...)
	}
	sequence, err := j.Journal.Append(ctx, meta, effect, after)
	t.end(err)
	return sequence, err
}

// Log returns l with its writes timed.
func (m *Metrics) Log(l audit.Log) audit.Log {
	return &timedLog{
		Log: l, write: m.backends.operation(backendAuditLog, "write"), history: m.backends.operation(backendAuditLog, "history"),
		records: m.backends.operation(backendAuditLog, "records"),
	}
}

type timedLog struct {
	audit.Log
	write, history, records operation
}

// Write implements [audit.Writer].
func (l *timedLog) Write(ctx context.Context, effects []events.Event[events.EffectCommitted]) error {
	ctx, t := l.write.begin(ctx)
	t.set(attribute.Int("palimpsest.effects", len(effects)))
	err := l.Log.Write(ctx, effects)
	t.end(err)
	return err
}

// History implements [audit.Log].
func (l *timedLog) History(ctx context.Context, project, factID string) ([]audit.Record, error) {
	ctx, t := l.history.begin(ctx)
	records, err := l.Log.History(ctx, project, factID)
	t.end(err)
	return records, err
}

// Embedder returns e with its calls timed.
func (m *Metrics) Embedder(e embed.Embedder) embed.Embedder {
	return &timedEmbedder{Embedder: e, embed: m.backends.operation(backendEmbedder, "embed")}
}

type timedEmbedder struct {
	embed.Embedder
	embed operation
}

// Unwrap returns what is timed.
func (e *timedEmbedder) Unwrap() embed.Embedder { return e.Embedder }

// Embed implements [embed.Embedder].
func (e *timedEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, t := e.embed.begin(ctx)
	if t.recording() {
		t.set(attribute.Int("palimpsest.texts", len(texts)))
	}
	vectors, err := e.Embedder.Embed(ctx, texts)
	t.end(err)
	return vectors, err
}
