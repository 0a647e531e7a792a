package query

import (
	"context"
	"iter"
	"sync"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/filter"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

type fakeJournal struct {
	mu      sync.Mutex
	effects []events.Event[events.EffectCommitted]
	// more is closed, and made anew, when an effect is added.
	more chan struct{}
	// begin is the first sequence that is kept.
	begin uint64
	// trimmed is what begin is from then on, by the sequence that was read last.
	trimmed map[uint64]uint64
	// failAt is the number of effects after which reading fails; -1 for never.
	failAt int
	// handed counts the effects that were read.
	handed int
	// asked is the sequence that the last read began behind.
	asked uint64
}

func newFakeJournal() *fakeJournal {
	return &fakeJournal{failAt: -1, begin: 1, more: make(chan struct{})}
}

func (f *fakeJournal) commit(effects ...events.Event[events.EffectCommitted]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.effects = append(f.effects, effects...)
	close(f.more)
	f.more = make(chan struct{})
}

func (f *fakeJournal) Last(context.Context) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return uint64(len(f.effects)), nil
}

func (f *fakeJournal) Begin(context.Context) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begin, nil
}

// trim has AUDIT begin at a sequence.
func (f *fakeJournal) trim(begin uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin = begin
}

func (f *fakeJournal) Since(_ context.Context, at time.Time) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	after := uint64(0)
	for _, e := range f.effects {
		if e.Arrived.Before(at) {
			after = e.Sequence
		}
	}
	return max(after, f.begin-1), nil
}

func (f *fakeJournal) ReadScope(ctx context.Context, fact scope.Scope, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return f.Read(ctx, scope.Exactly(fact), after)
}

func (f *fakeJournal) Read(ctx context.Context, sel scope.Selector, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return f.read(ctx, sel, after, false)
}

func (f *fakeJournal) Follow(ctx context.Context, sel scope.Selector, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return f.read(ctx, sel, after, true)
}

func (f *fakeJournal) read(ctx context.Context, sel scope.Selector, after uint64, follow bool) iter.Seq2[events.Event[events.EffectCommitted], error] {
	f.mu.Lock()
	f.asked = after
	f.mu.Unlock()
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		n := 0
		for seen := 0; ; {
			f.mu.Lock()
			effects, failAt, more := append([]events.Event[events.EffectCommitted](nil), f.effects[seen:]...), f.failAt, f.more
			f.mu.Unlock()
			seen += len(effects)
			for _, e := range effects {
				if failAt >= 0 && n == failAt {
					break
				}
				if e.Sequence <= after {
					continue
				}
				if begin, _ := f.Begin(ctx); e.Sequence < begin {
					yield(events.Event[events.EffectCommitted]{}, audit.ErrTrimmed)
					return
				}
				if !sel.Match(e.Scope) {
					continue
				}
				f.mu.Lock()
				f.handed++
				f.begin = max(f.begin, f.trimmed[e.Sequence])
				f.mu.Unlock()
				if n++; !yield(e, nil) {
					return
				}
			}
			if failAt == n {
				yield(events.Event[events.EffectCommitted]{}, errDown)
				return
			}
			if !follow {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
				yield(events.Event[events.EffectCommitted]{}, ctx.Err())
				return
			}
		}
	}
}

type fakeLog struct {
	asked   audit.ReportQuery
	records []audit.Record
	effects []events.Event[events.EffectCommitted]
	last    uint64
	err     error
	// read is called when a reading of effects has ended; may be nil.
	read func()
}

func (f *fakeLog) History(_ context.Context, project, factID string) ([]audit.Record, error) {
	var out []audit.Record
	for _, r := range f.records {
		if r.Scope.Project == project && r.FactID == factID {
			out = append(out, r)
		}
	}
	return out, f.err
}

func (f *fakeLog) LastSequence(context.Context) (uint64, error) { return f.last, f.err }

func (f *fakeLog) Between(_ context.Context, sel scope.Selector, after, until uint64, matching filter.Expr) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		for _, e := range f.effects {
			if e.Sequence > after && e.Sequence <= until && sel.Match(e.Scope) && audit.Holds(e, matching) && !yield(e, nil) {
				return
			}
		}
		if f.read != nil {
			f.read()
		}
	}
}

func (f *fakeLog) note(q audit.ReportQuery) error { f.asked = q; return f.err }

func (f *fakeLog) DailyDeltas(_ context.Context, q audit.ReportQuery) ([]audit.DailyDeltas, error) {
	return []audit.DailyDeltas{{Day: noon, Rule: "turn", Kind: events.DeltaAdd, Deltas: 2}}, f.note(q)
}

func (f *fakeLog) Noops(_ context.Context, q audit.ReportQuery) ([]audit.Noops, error) {
	return []audit.Noops{{Rule: "turn", Deltas: 8, Noops: 2}}, f.note(q)
}

func (f *fakeLog) Churn(_ context.Context, q audit.ReportQuery) ([]audit.Churn, error) {
	return []audit.Churn{{Scope: nora, FactID: "f", Changes: 3, Flips: 1}}, f.note(q)
}

func (f *fakeLog) Yield(_ context.Context, q audit.ReportQuery) ([]audit.Yield, error) {
	return []audit.Yield{{Rule: "turn", Extractor: "pack@1", Episodes: 4, Candidates: 2, Adds: 1}, {Rule: "b", Candidates: 1}}, f.note(q)
}

func (f *fakeLog) Latency(_ context.Context, q audit.ReportQuery) ([]audit.Latency, error) {
	return []audit.Latency{{Rule: "turn", Facts: 4, P50: time.Second, P95: 2 * time.Second, P99: 3 * time.Second}}, f.note(q)
}

func (f *fakeLog) Cost(_ context.Context, q audit.ReportQuery) ([]audit.Cost, error) {
	return []audit.Cost{{Rule: "a, b", Model: "m", Calls: 3, InputTokens: 100, OutputTokens: 20, Dollars: 0.5, Facts: 4}}, f.note(q)
}

func (f *fakeLog) Safety(_ context.Context, q audit.ReportQuery) ([]audit.Safety, error) {
	return []audit.Safety{{Reason: events.ReasonSafety, Rule: "turn", RuleID: "safety:ignore safety", Drops: 2}}, f.note(q)
}

func (f *fakeLog) Feedback(_ context.Context, q audit.ReportQuery) ([]audit.Feedback, error) {
	return []audit.Feedback{{FactID: "f", Rating: events.RatingNegative, Ratings: 2}}, f.note(q)
}
