package consolidator

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// tape is a journal of one scope that dropped everything below begin.
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

// kept is an audit log that has some effects of one scope.
type kept []events.Event[events.EffectCommitted]

func (k kept) Heads(_ context.Context, yield func(audit.Head) error) error {
	if len(k) == 0 {
		return nil
	}
	return yield(audit.Head{Scope: alice, Sequence: k[len(k)-1].Sequence})
}

func (k kept) Effects(_ context.Context, _ scope.Scope, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		for _, e := range k {
			if e.Data.Revision > after && !yield(e, nil) {
				return
			}
		}
	}
}

// lives is a bench over which n effects were committed, one fact each.
func lives(t *testing.T, n uint64) *bench {
	t.Helper()
	b := newBench(t)
	for i := range n {
		b.must(t, turn(t, i+1, i, string(rune('a'+i))))
	}
	return b
}

// trimmed is a world in which AUDIT holds the effects from revision begin on (6:
// none), and the audit log those of revisions in has, over a store that has the
// first n.
func trimmed(t *testing.T, begin int, has []uint64, n int) (*bench, tape) {
	t.Helper()
	whole := lives(t, 5).journal.effects
	older := newStore()
	for _, e := range whole[:n] {
		if err := older.Apply(t.Context(), e.Data, e.Sequence); err != nil {
			t.Fatal(err)
		}
	}
	b := benchOver(t, older, &memoryJournal{effects: slices.Clone(whole[begin-1:])})
	var k kept
	for _, e := range whole {
		if slices.Contains(has, e.Data.Revision) {
			k = append(k, e)
		}
	}
	b.deps.Kept = k
	first := whole[4].Sequence + 1
	if begin <= 5 {
		first = whole[begin-1].Sequence
	}
	return b, tape{b.journal, first}
}

var trims = []struct {
	name  string
	begin int // the first revision in AUDIT
	log   []uint64
	store int // revisions that the store has
	gap   *GapError
}{
	{"nothing dropped", 1, nil, 0, nil},
	{"the log bridges", 4, []uint64{1, 2, 3}, 0, nil},
	{"the log has all", 4, []uint64{1, 2, 3, 4, 5}, 0, nil},
	{"the log bridges from where the store is", 4, []uint64{3}, 2, nil},
	{"only the log has any", 6, []uint64{1, 2, 3, 4, 5}, 2, nil},
	{"the log begins late", 4, []uint64{2, 3}, 0, &GapError{Scope: alice, Missing: 1, Next: 2}},
	{"the log ends early", 4, []uint64{1, 2}, 0, &GapError{Scope: alice, Missing: 3, Next: 4}},
	{"the log has a hole", 4, []uint64{1, 3}, 0, &GapError{Scope: alice, Missing: 2, Next: 3}},
	{"nobody has it", 4, nil, 1, &GapError{Scope: alice, Missing: 2, Next: 4}},
}

// TestProjectorReadsTheLogBehindATrimmedStream, and names revisions that neither has.
func TestProjectorReadsTheLogBehindATrimmedStream(t *testing.T) {
	t.Parallel()
	for _, tc := range trims {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, tp := trimmed(t, tc.begin, tc.log, tc.store)
			b.deps.Behind = func(context.Context, scope.Scope) (bool, error) { return false, nil }
			in := b.audit(t)
			if len(in) == 0 {
				n, err := b.ApplyDropped(t.Context(), tp.begin)
				if n != 5-tc.store || err != nil || b.store.state.Revision != 5 || len(b.store.facts) != 5 {
					t.Errorf("%d dropped effects applied, %v, state %+v", n, err, b.store.state)
				}
				return
			}
			if err := b.project(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if wantGap(t, tc.gap, in[0].Err) {
				for i, e := range in {
					if !pipeline.IsRefused(e.Err) {
						t.Errorf("effect %d behind the gap: %v, want a refusal", i, e.Err)
					}
				}
				return
			}
			if b.store.state.Revision != 5 || len(b.store.facts) != 5 || b.store.state.LastOrdinal != 5 {
				t.Errorf("state %+v", b.store.state)
			}
			if got, want := len(announced(in[0].Out)), tc.begin-tc.store; got != want {
				t.Errorf("%d outcomes with the first effect, want %d", got, want)
			}
		})
	}
}

// TestApplyDropped: effects that the projector meets, that AUDIT lost or that the store
// has are left alone. Where the log lacks any, the gap is named.
func TestApplyDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin   uint64
		log     []uint64
		store   int
		applied int
		gap     *GapError
	}{
		"dropped":        {100, []uint64{1, 2, 3, 4, 5}, 1, 4, nil},
		"not dropped":    {2, []uint64{1, 2, 3, 4, 5}, 1, 0, nil},
		"known":          {100, []uint64{1, 2, 3, 4, 5}, 5, 0, nil},
		"a hole":         {100, []uint64{1, 2, 4, 5}, 1, 1, &GapError{Scope: alice, Missing: 3, Next: 4}},
		"an empty log":   {100, nil, 1, 0, nil},
		"the log is old": {100, []uint64{1, 2}, 3, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := trimmed(t, 6, c.log, c.store)
			n, err := b.ApplyDropped(t.Context(), c.begin)
			wantGap(t, c.gap, err)
			if n != c.applied || b.store.state.Revision != uint64(c.store+c.applied) {
				t.Errorf("%d applied, state %+v", n, b.store.state)
			}
		})
	}
}

func TestRebuildReadsTheLogBehindATrimmedStream(t *testing.T) {
	t.Parallel()
	for _, tc := range trims {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b, tp := trimmed(t, tc.begin, tc.log, tc.store)
			read := 0
			got, err := b.Rebuild(t.Context(), tp, func() { read++ }, refuse)
			if wantGap(t, tc.gap, err) {
				return
			}
			want := Rebuilt{Scopes: 1, Effects: 5 - tc.store}
			if got != want || b.store.state.Revision != 5 || len(b.store.facts) != 5 || read != 6-tc.begin {
				t.Errorf("rebuilt %+v, want %+v; read %d; state %+v", got, want, read, b.store.state)
			}
			last := b.deps.Kept.(kept)
			if n := len(b.journal.effects); n > 0 {
				last = kept(b.journal.effects)
			}
			if at := last[len(last)-1].Sequence; b.store.state.AuditSeq != at {
				t.Errorf("at sequence %d, want %d", b.store.state.AuditSeq, at)
			}
		})
	}
}

func wantGap(t *testing.T, want *GapError, err error) bool {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Fatal(err)
		}
		return false
	}
	var got *GapError
	if !errors.As(err, &got) {
		t.Fatalf("%v, want a gap", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gap (-want +got):\n%s", diff)
	}
	return true
}

// refuse ends a rebuild at the first scope that lacks effects.
func refuse(_ scope.Scope, err error) error { return err }

// TestRebuildReadsTheLogBehindAuditThatWasCutShort: the audit log has what AUDIT
// should have and lacks.
func TestRebuildReadsTheLogBehindAuditThatWasCutShort(t *testing.T) {
	t.Parallel()
	b, tp := trimmed(t, 6, []uint64{1, 2, 3, 4, 5}, 0)
	tp.begin = 2 // AUDIT dropped something, but not this
	if got, err := b.Rebuild(t.Context(), tp, func() {}, refuse); err != nil || got.Effects != 5 || b.store.state.Revision != 5 {
		t.Errorf("rebuild: %+v, %v, state %+v", got, err, b.store.state)
	}
}

// TestRebuildGoesOnBehindTheEndOfAudit only where the audit log continues the
// history that AUDIT has.
func TestRebuildGoesOnBehindTheEndOfAudit(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]uint64{"same history": 0, "another history": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, tp := trimmed(t, 1, []uint64{1, 2, 3, 4, 5}, 0)
			b.journal.effects = b.journal.effects[:3]
			for i := range b.journal.effects {
				b.journal.effects[i].Sequence += moved
			}
			log := b.deps.Kept.(kept)
			for i := range log {
				if i > 2 {
					log[i].Sequence += moved
				}
			}
			left := 0
			got, err := b.Rebuild(t.Context(), tp, func() {}, func(fact scope.Scope, err error) error {
				if left++; fact != alice || !errors.Is(err, ErrAhead) {
					t.Errorf("%s lacks %v", fact, err)
				}
				return nil
			})
			want, lacking := 5, 0
			if moved > 0 {
				want, lacking = 3, 1
			}
			if err != nil || got.Effects != want || left != lacking || b.store.state.Revision != uint64(want) {
				t.Errorf("rebuilt %+v, %v, state %+v, %d left", got, err, b.store.state, left)
			}
		})
	}
}
