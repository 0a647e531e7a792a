package consolidator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

func TestProjectorRollsForward(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n := range uint64(3) {
		if _, err := b.commit(t.Context(), turn(t, n+1, n, fmt.Sprintf("f%d", n))); err != nil {
			t.Fatal(err)
		}
	}
	behind := benchOver(t, newStore(), b.journal)
	for _, i := range []int{2, 0, 1, 2} { // late and repeated alike
		if _, err := behind.project(t.Context(), headOf(b.journal.effects[i])); err != nil {
			t.Fatal(err)
		}
	}
	if behind.store.applied != 3 || !cmp.Equal(b.store.facts, behind.store.facts) {
		t.Errorf("%d effects applied", behind.store.applied)
	}
	erased := benchOver(t, newStore(), b.journal)
	erased.store.state.Incarnation = 1
	if _, err := erased.project(t.Context(), headOf(b.journal.effects[0])); err != nil || erased.store.applied != 0 {
		t.Errorf("err %v, %d effects of an erased scope applied", err, erased.store.applied)
	}
}

func headOf(e events.Event[events.EffectCommitted]) events.Event[head] {
	return events.Event[head]{Meta: e.Meta, Data: head{Header: e.Data.Header, Revision: e.Data.Revision}}
}

// TestProjectorLeavesOwnCommits: what this process applied, or is about to, the
// projector does not read again.
func TestProjectorLeavesOwnCommits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.commit(t.Context(), turn(t, 1, 0, "f1")); err != nil {
		t.Fatal(err)
	}
	b.store.faults = &faults{step: "state"} // whoever asks is told
	if _, err := b.project(t.Context(), headOf(b.journal.effects[0])); err != nil {
		t.Errorf("the store was asked: %v", err)
	}
	end := b.own.begin(alice)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	later := headOf(b.journal.effects[0])
	later.Data.Revision++
	if _, err := b.project(ctx, later); !errors.Is(err, context.Canceled) {
		t.Errorf("the commit under way was not waited for: %v", err)
	}
	end()
	if _, err := b.project(t.Context(), later); !errors.Is(err, errCrash) {
		t.Errorf("an effect of somebody else was not looked for: %v", err)
	}
}

// TestP1ForgottenCommitsAreLookedUp: what this process applied, a store that lost
// it gets from AUDIT all the same.
func TestP1ForgottenCommitsAreLookedUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.commit(t.Context(), turn(t, 1, 0, "f1")); err != nil {
		t.Fatal(err)
	}
	b.Forget()
	b.store.faults = &faults{step: "state"} // whoever asks is told
	if _, err := b.project(t.Context(), headOf(b.journal.effects[0])); !errors.Is(err, errCrash) {
		t.Errorf("the store was not asked: %v", err)
	}
}

func TestSinkIsIdempotent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n := range uint64(3) {
		if _, err := b.commit(t.Context(), turn(t, n+1, n, fmt.Sprintf("f%d", n))); err != nil {
			t.Fatal(err)
		}
	}
	for _, cut := range [][2]int{{0, 2}, {1, 3}, {0, 3}} {
		if err := b.sink(t.Context(), b.journal.effects[cut[0]:cut[1]]); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.log.records) != 3 {
		t.Errorf("%d records", len(b.log.records))
	}
}

// A log that was lost, or restored from an older copy, gets back what the sink
// has acknowledged.
func TestLogCatchesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cfg.SinkSize = 2
	for n := range uint64(5) {
		b.mustCommit(t, turn(t, n+1, n, fmt.Sprintf("f%d", n)))
	}
	for _, c := range []struct{ behind, want int }{{3, 2}, {0, 5}, {5, 0}} {
		var after uint64
		if c.behind > 0 {
			after = b.journal.effects[c.behind-1].Sequence
		}
		clear(b.log.records)
		copied, err := b.CatchUp(t.Context(), b.journal, after)
		if err != nil || copied != c.want || len(b.log.records) != c.want {
			t.Errorf("behind %d: %d copied, %d records, %v", c.behind, copied, len(b.log.records), err)
		}
	}
}

// TestP7FaultAuditLogIsRestoredWhileItIsWritten: a log that comes back with less
// gets it back before anything newer hides the hole, and while nothing is written.
func TestP7FaultAuditLogIsRestoredWhileItIsWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.deps.End, b.deps.Tail = b.log, b.journal
	commit := func(n uint64) {
		t.Helper()
		b.mustCommit(t, turn(t, n+1, n, fmt.Sprintf("f%d", n)))
	}
	restore := func(kept uint64) {
		maps.DeleteFunc(b.log.records, func(at [2]uint64, _ audit.Record) bool { return at[0] > kept })
		b.end.due = time.Time{} // long after the last look
	}
	for n := range uint64(5) {
		commit(n)
	}
	if err := b.sink(t.Context(), b.journal.effects); err != nil || len(b.log.records) != 5 {
		t.Fatalf("%d records, %v", len(b.log.records), err)
	}
	restore(2)
	commit(5)
	if err := b.sink(t.Context(), b.journal.effects[5:]); err != nil || len(b.log.records) != 6 {
		t.Errorf("written to: %d records, %v", len(b.log.records), err)
	}
	restore(0)
	if _, err := b.watchEnd(t.Context(), noon); err != nil || len(b.log.records) != 6 {
		t.Errorf("left alone: %d records, %v", len(b.log.records), err)
	}
}

// TestP7FaultAuditLogIsRestoredBehindAnother: what another process wrote, and what
// could not be filled at once, is missed all the same.
func TestP7FaultAuditLogIsRestoredBehindAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n := range uint64(4) {
		b.mustCommit(t, turn(t, n+1, n, fmt.Sprintf("f%d", n)))
	}
	tail := &failingTail{Tail: b.journal, left: 1}
	b.deps.End, b.deps.Tail = b.log, tail
	b.deps.Acknowledged = func(_ context.Context, consumer string) (uint64, error) {
		if consumer != logConsumer {
			t.Errorf("asked for %s", consumer)
		}
		return b.journal.effects[2].Sequence, nil // the other one wrote three, and the log lost them
	}
	if err := b.sink(t.Context(), b.journal.effects[3:]); err == nil || len(b.log.records) != 0 {
		t.Fatalf("AUDIT could not be read: %d records, %v", len(b.log.records), err)
	}
	if err := b.sink(t.Context(), b.journal.effects[3:]); err != nil || len(b.log.records) != 4 {
		t.Errorf("asked again at once: %d records, %v", len(b.log.records), err)
	}
}

// failingTail cannot be read so many times.
type failingTail struct {
	audit.Tail
	left int
}

func (f *failingTail) All(ctx context.Context, after uint64) iter.Seq2[events.Event[events.EffectCommitted], error] {
	if f.left--; f.left >= 0 {
		return func(yield func(events.Event[events.EffectCommitted], error) bool) {
			yield(events.Event[events.EffectCommitted]{}, errCrash)
		}
	}
	return f.Tail.All(ctx, after)
}

// otherHistory is a log that has one revision of another history.
type otherHistory struct {
	*memoryLog
	revision uint64
}

func (l otherHistory) Write(ctx context.Context, effects []events.Event[events.EffectCommitted]) error {
	for _, e := range effects {
		if e.Data.Revision == l.revision {
			return audit.ErrOtherHistory
		}
	}
	return l.memoryLog.Write(ctx, effects)
}

// What the log has of another history is never retried, and keeps nothing else
// from the log.
func TestOtherHistoryIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n := range uint64(4) {
		b.mustCommit(t, turn(t, n+1, n, fmt.Sprintf("f%d", n)))
	}
	b.deps.Log = otherHistory{b.log, 2}
	if err := b.sink(t.Context(), b.journal.effects); !pipeline.IsReject(err) || !errors.Is(err, audit.ErrOtherHistory) {
		t.Errorf("sink: %v", err)
	}
	copied, err := b.CatchUp(t.Context(), b.journal, 0)
	if copied != 3 || len(b.log.records) != 3 || !errors.Is(err, audit.ErrOtherHistory) {
		t.Errorf("%d copied, %d records, %v", copied, len(b.log.records), err)
	}
}

func TestAccessIsCoalesced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.store.state.Incarnation = 1
	visit := func(incarnation uint64, at time.Duration, ids ...string) events.Event[events.FactReturned] {
		return events.Event[events.FactReturned]{Data: events.FactReturned{
			Header: events.Header{Scope: alice, Incarnation: incarnation}, FactIDs: ids, At: noon.Add(at),
		}}
	}
	if err := b.access(t.Context(), []events.Event[events.FactReturned]{
		visit(1, 2*time.Second, "b", "a"), visit(0, 0, "erased"), visit(1, time.Second, "a"),
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a 12:00:02", "b 12:00:02"}, b.store.touched); diff != "" {
		t.Error(diff)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("zero config: %v", err)
	}
	if err := (Config{Conflicts: -1}).Validate(); err == nil {
		t.Error("negative attempts pass")
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("no dependencies pass")
	}
	if n := len(newBench(t).Stages()); n != 7 {
		t.Errorf("%d stages", n)
	}
}
