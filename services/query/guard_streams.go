package query

import (
	"context"
	"iter"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/filter"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// guardedPublisher guards a [pipeline.Publisher].
type guardedPublisher struct{ next pipeline.Publisher }

func (g guardedPublisher) Publish(ctx context.Context, m events.Meta, p events.Payload) (sequence uint64, err error) {
	if reached(ctx, p.Owner()) != nil {
		return 0, noUser()
	}
	return g.next.Publish(ctx, m, p)
}

// guardedJournal guards an [audit.Stream].
type guardedJournal struct{ next audit.Stream }

type effects = iter.Seq2[events.Event[events.EffectCommitted], error]

// failing yields an error alone.
func failing(err error) effects {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		yield(events.Event[events.EffectCommitted]{}, err)
	}
}

func (g guardedJournal) ReadScope(ctx context.Context, fact scope.Scope, after uint64) effects {
	if err := reached(ctx, fact); err != nil {
		return failing(err)
	}
	return g.next.ReadScope(ctx, fact, after)
}

func (g guardedJournal) Read(ctx context.Context, sel scope.Selector, after uint64) effects {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return failing(err)
	}
	return g.next.Read(ctx, sel, after)
}

func (g guardedJournal) Follow(ctx context.Context, sel scope.Selector, after uint64) effects {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return failing(err)
	}
	return g.next.Follow(ctx, sel, after)
}

// Last, Since and Begin return places in the stream, which hold no data of a user.
func (g guardedJournal) Last(ctx context.Context) (uint64, error) { return g.next.Last(ctx) }

func (g guardedJournal) Since(ctx context.Context, at time.Time) (uint64, error) {
	return g.next.Since(ctx, at)
}

func (g guardedJournal) Begin(ctx context.Context) (uint64, error) { return g.next.Begin(ctx) }

// guardedLog guards an [AuditLog].
type guardedLog struct{ next AuditLog }

func (g guardedLog) History(ctx context.Context, project, factID string) ([]audit.Record, error) {
	if err := inProject(ctx, project); err != nil {
		return nil, err
	}
	all, err := g.next.History(ctx, project, factID)
	return kept(ctx, all, func(r audit.Record) scope.Scope { return r.Scope }), err
}

func (g guardedLog) Between(ctx context.Context, sel scope.Selector, after, until uint64, matching filter.Expr) effects {
	sel, err := narrowed(ctx, sel)
	if err != nil {
		return failing(err)
	}
	return g.next.Between(ctx, sel, after, until, matching)
}

func (g guardedLog) LastSequence(ctx context.Context) (uint64, error) {
	return g.next.LastSequence(ctx)
}

func (g guardedLog) DailyDeltas(ctx context.Context, q audit.ReportQuery) ([]audit.DailyDeltas, error) {
	return reported(ctx, q, g.next.DailyDeltas)
}

func (g guardedLog) Noops(ctx context.Context, q audit.ReportQuery) ([]audit.Noops, error) {
	return reported(ctx, q, g.next.Noops)
}

func (g guardedLog) Churn(ctx context.Context, q audit.ReportQuery) ([]audit.Churn, error) {
	return reported(ctx, q, g.next.Churn)
}

func (g guardedLog) Yield(ctx context.Context, q audit.ReportQuery) ([]audit.Yield, error) {
	return reported(ctx, q, g.next.Yield)
}

func (g guardedLog) Latency(ctx context.Context, q audit.ReportQuery) ([]audit.Latency, error) {
	return reported(ctx, q, g.next.Latency)
}

func (g guardedLog) Cost(ctx context.Context, q audit.ReportQuery) ([]audit.Cost, error) {
	return reported(ctx, q, g.next.Cost)
}

func (g guardedLog) Safety(ctx context.Context, q audit.ReportQuery) ([]audit.Safety, error) {
	return reported(ctx, q, g.next.Safety)
}

func (g guardedLog) Feedback(ctx context.Context, q audit.ReportQuery) ([]audit.Feedback, error) {
	return reported(ctx, q, g.next.Feedback)
}

// reported narrows what a report counts.
func reported[T any](ctx context.Context, q audit.ReportQuery, ask func(context.Context, audit.ReportQuery) ([]T, error)) (_ []T, err error) {
	if q.Selector, err = narrowed(ctx, q.Selector); err != nil {
		return nil, err
	}
	return ask(ctx, q)
}
