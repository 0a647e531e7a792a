package consolidator

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// tape is a journal that holds one scope, and what it dropped.
type tape struct {
	*memoryJournal
	begin uint64
}

func (h tape) All(ctx context.Context, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return h.ReadScope(ctx, alice, after)
}

func (h tape) Begin(context.Context) (uint64, error) { return h.begin, nil }

func (h tape) Heads(_ context.Context, yield func(audit.Head) error) error {
	if last := h.last(); last > 0 {
		return yield(audit.Head{Scope: alice, Sequence: last})
	}
	return nil
}

// A store restored from an older copy, or lost, has everything again after a
// start; the projector acknowledged it all long ago.
func TestHealRestoredStore(t *testing.T) {
	t.Parallel()
	for _, kept := range []int{0, 1, 3} {
		b := newBench(t)
		for n := range uint64(3) {
			b.must(t, turn(t, n+1, n, string(rune('a'+n))))
		}
		older := newStore()
		for _, e := range b.journal.effects[:kept] {
			if err := older.Apply(t.Context(), e.Data, e.Sequence); err != nil {
				t.Fatal(err)
			}
		}
		restored := benchOver(t, older, b.journal)
		got, err := restored.Heal(t.Context(), tape{b.journal, 1})
		if err != nil {
			t.Fatal(err)
		}
		want := Healed{Scopes: 1}
		if kept < 3 {
			want.Behind = 1
		}
		if got != want || older.state.Revision != 3 || len(older.facts) != 3 || older.state.Watermarks["turn"] != 3 ||
			kept < 3 && older.state.LastOrdinal != 3 {
			t.Errorf("%d kept: healed %+v, state %+v", kept, got, older.state)
		}
	}
}

func TestHealNamesAuditThatIsBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, turn(t, 1, 0, "f1"))
	b.must(t, turn(t, 2, 1, "f2"))
	b.journal.effects = b.journal.effects[:1]
	got, err := b.Heal(t.Context(), tape{b.journal, 1})
	if !errors.Is(err, ErrAhead) || got.Ahead != 1 || got.Behind != 0 {
		t.Errorf("healed %+v, %v", got, err)
	}
}

// moving is a tape that commits once more between a scope's head and whoever
// compares it.
type moving struct {
	tape
	commit func()
}

func (m moving) Heads(ctx context.Context, yield func(audit.Head) error) error {
	return m.tape.Heads(ctx, func(head audit.Head) error {
		m.commit()
		return yield(head)
	})
}

// A heal that is tried again runs beside the services: what they commit
// meanwhile is nothing that AUDIT lost.
func TestHealBesideCommits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, turn(t, 1, 0, "f1"))
	commit := func() {
		b.must(t, turn(t, 2, 1, "f2"))
		b.must(t, turn(t, 3, 2, "f3"))
	}
	got, err := b.Heal(t.Context(), moving{tape{b.journal, 1}, commit})
	if err != nil || got != (Healed{Scopes: 1}) || b.store.state.Revision != 3 {
		t.Errorf("healed %+v, %v", got, err)
	}
}

// An effect that cannot be read is no fault of the batch that waits for it.
func TestUnreadableAuditBuriesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, turn(t, 1, 0, "f1"))
	b.must(t, turn(t, 2, 1, "f2"))
	refused := &events.FieldError{Field: "delta.kind", Code: events.CodeInvalidField, Reason: "is not known"}
	lost := benchOver(t, newStore(), b.journal)
	lost.deps.Journal = unreadable{b.journal, refused}
	_, err := lost.commit(t.Context(), turn(t, 3, 2, "f3"))
	var field *events.FieldError
	if err == nil || errors.As(err, &field) || pipeline.IsReject(err) {
		t.Errorf("err = %v, want one that is retried", err)
	}
}

type unreadable struct {
	audit.Journal
	err error
}

func (u unreadable) ReadScope(context.Context, scope.Scope, uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		yield(events.Event[events.EffectCommitted]{}, u.err)
	}
}

// Streams that were lost or restored from an older copy cannot take what comes
// next: a start says so, though the store or the log may stand where they stood.
func TestHealNamesWhatAuditLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effects, stored int // left of two
		want            Healed
	}{
		"all of it":                   {0, 2, Healed{Scopes: 1, Ahead: 1}},
		"all of it, and the store":    {0, 0, Healed{Scopes: 1, Ahead: 1}},
		"the newest":                  {1, 2, Healed{Scopes: 1, Ahead: 1}},
		"the newest, and the store's": {1, 1, Healed{Scopes: 1, Ahead: 1}},
		"nothing":                     {2, 2, Healed{Scopes: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.must(t, turn(t, 1, 0, "f1"))
			b.must(t, turn(t, 2, 1, "f2"))
			st := newStore()
			for _, e := range b.journal.effects[:c.stored] {
				if err := st.Apply(t.Context(), e.Data, e.Sequence); err != nil {
					t.Fatal(err)
				}
			}
			log := kept(slices.Clone(b.journal.effects))
			b.journal.effects = b.journal.effects[:c.effects]
			left := benchOver(t, st, b.journal)
			left.deps.Kept = log
			got, err := left.Heal(t.Context(), tape{b.journal, 1})
			if got != c.want || errors.Is(err, ErrAhead) != (c.want.Ahead > 0) || (err != nil) != (c.want.Ahead > 0) {
				t.Errorf("healed %+v, want %+v: %v", got, c.want, err)
			}
		})
	}
}

// exporter names the one scope of the store.
type exporter struct{ store.Exporter }

func (exporter) Projects(context.Context) ([]string, error) { return []string{alice.Project}, nil }

func (exporter) Scopes(_ context.Context, _ scope.Selector, yield func(scope.Scope) bool) error {
	yield(alice)
	return nil
}

// Where the streams and the audit log are lost together, only the store knows
// what there was.
func TestHealNamesWhatOnlyTheStoreHas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effects int // left of two in AUDIT
		begin   uint64
		want    Healed
	}{
		"all of it is lost":    {0, 1, Healed{Scopes: 1, Ahead: 1}},
		"all of it is dropped": {0, 7, Healed{}},
		"nothing is lost":      {2, 1, Healed{Scopes: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.must(t, turn(t, 1, 0, "f1"))
			b.must(t, turn(t, 2, 1, "f2"))
			b.journal.effects = b.journal.effects[:c.effects]
			b.deps.Stored = exporter{}
			got, err := b.Heal(t.Context(), tape{b.journal, c.begin})
			if got != c.want || errors.Is(err, ErrAhead) != (c.want.Ahead > 0) || (err != nil) != (c.want.Ahead > 0) {
				t.Errorf("healed %+v, want %+v: %v", got, c.want, err)
			}
		})
	}
}

// A scope of which nothing was committed yet is ahead of nothing.
func TestHealOfWhatWasOnlySaid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.deps.Stored = exporter{}
	if got, err := b.Heal(t.Context(), tape{b.journal, 1}); err != nil || got != (Healed{}) {
		t.Errorf("healed %+v, %v", got, err)
	}
}
