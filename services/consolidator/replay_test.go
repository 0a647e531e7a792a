package consolidator

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// broken is an effect as AUDIT holds it, changed.
func broken(t *testing.T, e events.Event[events.EffectCommitted], change func(effect map[string]any)) *pipeline.Entry {
	t.Helper()
	subject, header, body, err := events.Encode(e.Meta, e.Data)
	if err != nil {
		t.Fatal(err)
	}
	effect := map[string]any{}
	if err := json.Unmarshal(body, &effect); err != nil {
		t.Fatal(err)
	}
	change(effect)
	if body, err = json.Marshal(effect); err != nil {
		t.Fatal(err)
	}
	return entry(e.Sequence, subject, header, body)
}

// unreadableLog has an effect that cannot be read.
type unreadableLog struct {
	kept
	err error
}

func (u unreadableLog) Effects(context.Context, scope.Scope, uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	return func(yield func(events.Event[events.EffectCommitted], error) bool) {
		yield(events.Event[events.EffectCommitted]{}, u.err)
	}
}

// TestReplayRestoredStore: a store restored from an older copy, or lost, has
// everything again.
func TestReplayRestoredStore(t *testing.T) {
	t.Parallel()
	b := lives(t, 3)
	for _, keep := range []int{0, 1, 3} {
		r := restored(t, b, keep)
		r.deps.Behind = caughtUp
		after := uint64(0)
		if keep > 0 {
			after = b.journal.effects[keep-1].Sequence
		}
		if err := r.Replay(t.Context(), replayed(func() []*pipeline.Entry { return b.audit(t) }), after); err != nil {
			t.Fatal(err)
		}
		s := r.store.state
		if s.Revision != 3 || len(r.store.facts) != 3 || s.Watermarks["turn"] != 3 || r.store.applied != 3-keep || keep < 3 && s.LastOrdinal != 3 {
			t.Errorf("%d kept: %d applied, state %+v", keep, r.store.applied, s)
		}
		if got := r.cursors[Projector]; got != wholeCursor {
			t.Errorf("%d kept: cursor %+v", keep, got)
		}
	}
}

// TestReplayNamesWhatFailed: the cursor stays where an effect may yet be applied, and
// moves where neither AUDIT nor the audit log has the missing effects.
func TestReplayNamesWhatFailed(t *testing.T) {
	t.Parallel()
	b := lives(t, 3)
	for name, c := range map[string]struct {
		fault *faults
		gap   bool
		moves bool
	}{
		"nothing":         {nil, false, true},
		"a store":         {&faults{step: "before apply", skip: 1}, false, false},
		"a gap":           {nil, true, true},
		"a store, a gap":  {&faults{step: "before apply", skip: 1}, true, false},
		"the first state": {&faults{step: "state"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, both := crowded(t, b)
			both[bob].faults = c.fault
			past := replayed(func() []*pipeline.Entry {
				in := mixed(t, b)
				if c.gap {
					in = in[1:] // the first of alice
				}
				return in
			})
			err := r.Replay(t.Context(), past, 0)
			if failed := errors.Is(err, errCrash); failed != (c.fault != nil) {
				t.Errorf("failed: %v", err)
			}
			if gap := errors.As(err, new(*GapError)); gap != (c.gap && c.fault == nil) {
				t.Errorf("a gap: %v", err)
			}
			if _, moved := r.cursors[Projector]; moved != c.moves {
				t.Errorf("the cursor moved: %t", moved)
			}
			if err := r.Replay(t.Context(), past, 0); errors.Is(err, errCrash) || both[bob].state.Revision != 3 || both[bob].applied != 3 {
				t.Errorf("again: %v, bob at revision %d", err, both[bob].state.Revision)
			}
			if want := map[bool]uint64{false: 3, true: 0}[c.gap]; both[alice].state.Revision != want {
				t.Errorf("alice at revision %d, want %d", both[alice].state.Revision, want)
			}
		})
	}
}

// TestReplayLeavesOutWhatCannotBeRead as the projector does, which buries it.
func TestReplayLeavesOutWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := lives(t, 2)
	r := restored(t, b, 0)
	past := replayed(func() []*pipeline.Entry {
		noise := entry(50, "palimpsest.audit.p.alice._._", nil, []byte("no event"))
		return append(b.audit(t), broken(t, b.journal.effects[1], func(e map[string]any) { e["revision"] = -3 }), noise)
	})
	if err := r.Replay(t.Context(), past, 0); err != nil || r.store.state.Revision != 2 || r.cursors[Projector] != wholeCursor {
		t.Errorf("%v, state %+v, cursors %v", err, r.store.state, r.cursors)
	}
}

func TestSinkIsIdempotent(t *testing.T) {
	t.Parallel()
	b := lives(t, 3)
	for _, cut := range [][2]int{{0, 2}, {1, 3}, {0, 3}, {1, 2}} {
		in := b.audit(t)[cut[0]:cut[1]]
		if err := b.sink(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(make([]string, len(in)), errs(in)); diff != "" {
			t.Error(diff)
		}
	}
	if len(b.log.records) != 3 {
		t.Errorf("%d records", len(b.log.records))
	}
}

// TestP10SinkLeavesOutWhatWasErased: an older copy of AUDIT has the effects of an erased
// user still.
func TestP10SinkLeavesOutWhatWasErased(t *testing.T) {
	t.Parallel()
	b := lives(t, 2)
	b.deps.Born = func(project, user string) uint64 {
		if project == alice.Project && user == alice.User {
			return 1
		}
		return 0
	}
	in := mixed(t, b)
	if err := b.sink(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(make([]string, len(in)), errs(in)); diff != "" {
		t.Error(diff)
	}
	for _, r := range b.log.records {
		if r.Scope == alice {
			t.Errorf("the log has revision %d of an erased user", r.Revision)
		}
	}
	if len(b.log.records) == 0 {
		t.Error("the log has nothing of the others")
	}
}

// TestSinkWaitsForTheLog: nothing is passed while the log cannot be written.
func TestSinkWaitsForTheLog(t *testing.T) {
	t.Parallel()
	b := lives(t, 3)
	b.log.err = errCrash
	if err := b.sink(t.Context(), b.audit(t)); !errors.Is(err, errCrash) || pipeline.IsRefused(err) {
		t.Errorf("three effects: %v", err)
	}
	in := b.audit(t)[:1]
	if err := b.sink(t.Context(), in); err == nil && !errors.Is(in[0].Err, errCrash) || pipeline.IsRefused(in[0].Err) {
		t.Errorf("one effect: %v, %v", err, in[0].Err)
	}
}

// otherHistory is a log that has one revision of another history, and fails once it
// gets another revision by itself.
type otherHistory struct {
	*memoryLog
	revision uint64
	fails    uint64
}

func (l otherHistory) Write(ctx context.Context, effects []events.Event[events.EffectCommitted]) error {
	for _, e := range effects {
		switch {
		case e.Data.Revision == l.revision:
			return audit.ErrOtherHistory
		case e.Data.Revision == l.fails && len(effects) == 1 && e.Scope == alice:
			return errCrash
		}
	}
	return l.memoryLog.Write(ctx, effects)
}

// TestOtherHistoryIsRefused: what the log has of another history is never retried, and
// keeps nothing else from the log.
func TestOtherHistoryIsRefused(t *testing.T) {
	t.Parallel()
	b := lives(t, 4)
	b.deps.Log = otherHistory{b.log, 2, 0}
	in := b.audit(t)
	if err := b.sink(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "refused", "", ""}, errs(in)); diff != "" || !errors.Is(in[1].Err, audit.ErrOtherHistory) {
		t.Error(in[1].Err, diff)
	}
	if in := b.audit(t)[1:2]; b.sink(t.Context(), in) != nil || !pipeline.IsRefused(in[0].Err) {
		t.Errorf("by itself: %v", in[0].Err)
	}
	clear(b.log.records)
	past := replayed(func() []*pipeline.Entry { return b.audit(t) })
	copied, err := b.FillLog(t.Context(), past)
	if copied != 3 || len(b.log.records) != 3 || !errors.Is(err, audit.ErrOtherHistory) || b.cursors[logReader] != wholeCursor {
		t.Errorf("%d copied, %d records, %v, cursors %v", copied, len(b.log.records), err, b.cursors)
	}
	// Those behind one that failed wait, in its scope alone.
	b.deps.Log = otherHistory{b.log, 2, 3}
	in = mixed(t, b)
	if err := b.sink(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"", "", "refused", "refused", "retried", "", "retried", ""}, errs(in)); diff != "" {
		t.Error(diff)
	}
}

// TestLogIsFilled: a log that was lost, or restored from an older copy, gets back the
// effects that it lacks. Those that it has are no error.
func TestLogIsFilled(t *testing.T) {
	t.Parallel()
	b := lives(t, 5)
	past := replayed(func() []*pipeline.Entry { return b.audit(t) })
	b.log.err = errCrash
	if _, err := b.FillLog(t.Context(), past); !errors.Is(err, errCrash) || len(b.cursors) != 0 {
		t.Errorf("a log that cannot be written: %v, cursors %v", err, b.cursors)
	}
	b.log.err = nil
	for range 2 {
		copied, err := b.FillLog(t.Context(), past)
		if err != nil || copied != 5 || len(b.log.records) != 5 || b.cursors[logReader] != wholeCursor {
			t.Errorf("%d copied, %d records, %v, cursors %v", copied, len(b.log.records), err, b.cursors)
		}
	}
}

// TestAppliedAndLogged: whether a store has an effect, and what decides nothing.
func TestAppliedAndLogged(t *testing.T) {
	t.Parallel()
	b := lives(t, 4)
	r := restored(t, b, 2)
	r.deps.Kept = kept{b.journal.effects[0], b.journal.effects[2]} // a hole
	type answer struct{ Has, Decides bool }
	for i, want := range []struct{ applied, logged bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		e := b.audit(t)[i]
		applied, decides, err := r.Applied(t.Context(), e)
		if got := (answer{applied, decides}); err != nil || got != (answer{want.applied, true}) {
			t.Errorf("effect %d applied: %+v, %v", i+1, got, err)
		}
		logged, decides, err := r.Logged(t.Context(), e)
		if got := (answer{logged, decides}); err != nil || got != (answer{want.logged, true}) {
			t.Errorf("effect %d logged: %+v, %v", i+1, got, err)
		}
	}
	noise := entry(50, "palimpsest.audit.p.alice._._", nil, []byte("no event"))
	for name, ask := range map[string]func(context.Context, *pipeline.Entry) (bool, bool, error){"applied": r.Applied, "logged": r.Logged} {
		if has, decides, err := ask(t.Context(), noise); has || decides || err != nil {
			t.Errorf("%s, no event: %t, %t, %v", name, has, decides, err)
		}
	}
	r.store.faults = &faults{step: "state"}
	if _, _, err := r.Applied(t.Context(), b.audit(t)[0]); !errors.Is(err, errCrash) {
		t.Errorf("a store that fails: %v", err)
	}
	r.deps.Kept = unreadableLog{err: errCrash}
	if has, _, err := r.Logged(t.Context(), b.audit(t)[0]); has || !errors.Is(err, errCrash) {
		t.Errorf("a log that fails: %t, %v", has, err)
	}
	r.deps.Kept = nil
	if _, decides, err := r.Logged(t.Context(), b.audit(t)[0]); decides || err != nil {
		t.Errorf("no log: %t, %v", decides, err)
	}
}

// TestUnreadableAuditBuriesNothing: an effect that cannot be read is no fault of the
// batch that waits for it.
func TestUnreadableAuditBuriesNothing(t *testing.T) {
	t.Parallel()
	b := lives(t, 2)
	refused := &events.FieldError{Field: "delta.kind", Code: events.CodeInvalidField, Reason: "is not known"}
	lost := benchOver(t, newStore(), b.journal)
	lost.deps.Journal = unreadable{b.journal, refused}
	if _, err := lost.commit(t.Context(), turn(t, 3, 2, "f3")); err == nil || pipeline.IsRefused(err) {
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
