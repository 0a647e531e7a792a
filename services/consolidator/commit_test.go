package consolidator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	out, err := b.commit(t.Context(), turn(t, 1, 0, "f1"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"req-f1"}, announced(out)); diff != "" {
		t.Error(diff)
	}
	if s := b.store.state; s.Revision != 1 || s.Watermarks["turn"] != 1 || s.AuditSeq != 3 {
		t.Errorf("state %+v", s)
	}
	e := b.journal.effects[0]
	if e.Data.CommittedAt != noon || e.CausationID != "m-f1" {
		t.Errorf("effect %+v", e)
	}
}

// A process may be killed, or the store may lose rows, at any step. The message comes again, and afterwards
// everything happened once and its outcome was announced.
func TestCrashBetweenSteps(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"state", "lost", "facts", "before append", "after append", "before apply", "after apply", "before ack"} {
		for _, kind := range []string{"turn", "command"} {
			t.Run(kind+" "+step, func(t *testing.T) {
				t.Parallel()
				f := &faults{}
				m, j := newStore(), &memoryJournal{}
				m.faults, j.faults = f, f
				b := benchOver(t, m, j)
				if _, err := b.commit(t.Context(), turn(t, 1, 0, "f0")); err != nil {
					t.Fatal(err)
				}
				in, revision, want, version := turn(t, 2, 1, "f1"), uint64(2), "req-f1", uint64(1)
				if kind == "command" {
					if _, err := b.commit(t.Context(), in); err != nil {
						t.Fatal(err)
					}
					in, revision, want, version = remove(t, "f1", 1), 3, "r-1", 2
				}
				f.mu.Lock()
				f.step = step
				f.mu.Unlock()
				if _, err := b.commit(t.Context(), in); step != "before ack" && !errors.Is(err, errCrash) && !errors.Is(err, store.ErrLost) {
					t.Fatalf("err = %v, want the crash or the loss", err)
				}
				in.Delivery = 2
				out, err := b.commit(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(announced(out), want) {
					t.Errorf("announced %v, want %s", announced(out), want)
				}
				if m.state.Revision != revision || len(j.effects) != int(revision) || m.applied != int(revision) {
					t.Errorf("revision %d, %d effects, %d applied; want %d of each", m.state.Revision, len(j.effects), m.applied, revision)
				}
				if got := m.facts["f1"].Revision; got != version {
					t.Errorf("fact has revision %d, want %d", got, version)
				}
			})
		}
	}
}

func TestOldBatchIsAcked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 3 {
		if _, err := b.commit(t.Context(), turn(t, 1, 0, "f1")); err != nil {
			t.Fatal(err)
		}
	}
	out, err := b.commit(t.Context(), turn(t, 3, 1, "f3")) // begins above the watermark
	if err != nil || len(out) != 0 || len(b.journal.effects) != 1 {
		t.Errorf("out %v, err %v, %d effects", out, err, len(b.journal.effects))
	}
}

func TestSkippedBatchMovesWatermark(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.commit(t.Context(), turn(t, 1, 0, "f1")); err != nil {
		t.Fatal(err)
	}
	in := turn(t, 2, 0, "f2") // a stale basis does not matter to nothing
	in.Data.Skipped, in.Data.Deltas, in.Data.Candidates = "poison", nil, nil
	out, err := b.commit(t.Context(), in)
	if err != nil || !slices.Equal(announced(out), []string{"req-f2"}) {
		t.Fatalf("out %v, err %v", out, err)
	}
	e := b.journal.effects[1].Data
	if e.Tally.Skipped != 1 || b.store.state.Watermarks["turn"] != 2 || e.Outcomes[0].Skipped != "poison" {
		t.Errorf("effect %+v", e)
	}
}

func TestOlderIncarnationIsDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.store.state.Incarnation = 2
	in := turn(t, 1, 0, "f1")
	in.Data.Incarnation = 1
	if out, err := b.commit(t.Context(), in); err != nil || len(out) != 0 || len(b.journal.effects) != 0 {
		t.Errorf("out %v, err %v", out, err)
	}
	in.Data.Incarnation = 3
	if _, err := b.commit(t.Context(), in); err == nil || pipeline.IsRefused(err) {
		t.Errorf("an incarnation to come: %v, want a retry", err)
	}
}

// A store that lost acknowledged writes is rolled forward before it is judged.
func TestBehindIsRolledForward(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for n := range uint64(3) {
		if _, err := b.commit(t.Context(), turn(t, n+1, n, fmt.Sprintf("f%d", n))); err != nil {
			t.Fatal(err)
		}
	}
	restored := benchOver(t, newStore(), b.journal)
	out, err := restored.commit(t.Context(), turn(t, 4, 3, "f3"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"req-f0", "req-f1", "req-f2", "req-f3"}, announced(out)); diff != "" {
		t.Error(diff)
	}
	if restored.store.state.Revision != 4 || len(restored.store.facts) != 4 {
		t.Errorf("state %+v", restored.store.state)
	}
}

func TestConflictIsJudgedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := benchOver(t, newStore(), b.journal)
	b.journal.meanwhile = func() {
		theirs := turn(t, 1, 0, "theirs")
		theirs.Data.Deltas = events.Deltas{add(t, like("theirs", "ours"))}
		other.must(t, theirs)
	}
	in := turn(t, 1, 0, "ours")
	in.Data.Rule = "sleep" // another rule: its range is not old, its basis is
	in.Data.Attempt = 1
	out, err := b.commit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	again, ok := out[len(out)-1].(events.CandidatesExtracted)
	if !ok || again.Attempt != 2 {
		t.Errorf("out %+v", out)
	}
	if b.store.state.Revision != 1 || len(b.journal.effects) != 1 {
		t.Errorf("state %+v", b.store.state)
	}
}

func TestCommandConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.commit(t.Context(), turn(t, 1, 0, "f1")); err != nil {
		t.Fatal(err)
	}
	out, err := b.commit(t.Context(), remove(t, "f1", 9))
	if err != nil || len(out) != 1 {
		t.Fatalf("out %v, err %v", out, err)
	}
	o := out[0].(events.OutcomeAnnounced).Outcome //nolint:forcetypeassert // the test fails
	if o.Conflict == "" || o.CorrelationID != "r-1" || b.store.facts["f1"].ValidUntil != nil {
		t.Errorf("outcome %+v", o)
	}
	if b.store.state.Watermarks["turn"] != 1 || b.store.state.Revision != 2 {
		t.Errorf("state %+v", b.store.state)
	}
}

// Several consolidators on one scope commit revisions without a gap, and what
// each committed is known once.
func TestConcurrentConsolidators(t *testing.T) {
	t.Parallel()
	const workers, each = 4, 10
	m, j := newStore(), &memoryJournal{}
	var wg sync.WaitGroup
	for w := range workers {
		b := benchOver(t, m, j)
		wg.Go(func() {
			for n := range uint64(each) {
				in := turn(t, n+1, 0, fmt.Sprintf("f%d-%d", w, n))
				in.Data.Rule = fmt.Sprintf("rule%d", w)
				for {
					state, _ := m.State(t.Context(), alice)
					in.Data.Basis = state.Revision
					out, err := b.commit(t.Context(), in)
					if err != nil && !errors.Is(err, errBusy) {
						t.Error(err)
						return
					}
					if err == nil && !slices.ContainsFunc(out, func(p events.Payload) bool { return p.Kind() == events.KindCandidatesExtracted }) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	if len(j.effects) != workers*each || len(m.facts) != workers*each {
		t.Fatalf("%d effects, %d facts, want %d", len(j.effects), len(m.facts), workers*each)
	}
	for i, e := range j.effects {
		if e.Data.Revision != uint64(i+1) {
			t.Fatalf("effect %d has revision %d", i, e.Data.Revision)
		}
	}
	rebuilt := newStore()
	if err := benchOver(t, rebuilt, j).RollForward(t.Context(), alice); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.facts, rebuilt.facts); diff != "" {
		t.Error(diff)
	}
}

// A command too large for one effect may be killed between two of them; what
// was closed counts as its own work, and its outcome tells of all.
func TestCrashWithinLargeCommand(t *testing.T) {
	t.Parallel()
	const facts = 400
	f := &faults{step: "after apply"}
	m, j := newStore(), &memoryJournal{}
	b := benchOver(t, m, j)
	if _, err := b.commit(t.Context(), turn(t, 1, 0, "said")); err != nil {
		t.Fatal(err)
	}
	in := remove(t, "f0", 1)
	prov := in.Data.Deltas[0].Provenance()
	ids := make([]string, 0, facts)
	for i := range facts {
		id := fmt.Sprintf("f%d", i)
		ids = append(ids, id)
		m.facts[id] = events.Fact{ID: id, Revision: 1, Text: strings.Repeat("long ", 400), ValidFrom: noon}
		in.Data.Command.IfMatch[id] = 1
	}
	del, err := events.NewDelete(prov, ids)
	if err != nil {
		t.Fatal(err)
	}
	in.Data.Deltas = events.Deltas{del}
	m.faults, j.faults = f, f
	if _, err := b.commit(t.Context(), in); !errors.Is(err, errCrash) {
		t.Fatalf("err = %v, want the crash", err)
	}
	if n := len(j.effects); n != 2 {
		t.Fatalf("%d effects before the crash, want 2", n)
	}
	in.Delivery = 2
	out, err := b.commit(t.Context(), in)
	if err != nil || len(out) != 1 {
		t.Fatalf("%d follow, err %v", len(out), err)
	}
	o := out[0].(events.OutcomeAnnounced).Outcome //nolint:forcetypeassert // the test fails
	if o.Conflict != "" || len(o.Results) != facts {
		t.Errorf("conflict %q, %d results", o.Conflict, len(o.Results))
	}
	for id, f := range m.facts {
		if id != "said" && (f.Revision != 2 || f.ValidUntil == nil) {
			t.Errorf("%s has revision %d, until %v", id, f.Revision, f.ValidUntil)
		}
	}
}

// Outcomes are kept for days, AUDIT for ever: a command that comes again after
// its outcome is gone is still known.
func TestRepeatedCommandWithoutOutcome(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.commit(t.Context(), turn(t, 1, 0, "f1")); err != nil {
		t.Fatal(err)
	}
	in := remove(t, "f1", 1)
	for in.Delivery = 1; in.Delivery <= 2; in.Delivery++ {
		out, err := b.commit(t.Context(), in)
		if err != nil || !slices.Equal(announced(out), []string{"r-1"}) {
			t.Fatalf("out %v, err %v", out, err)
		}
		b.store.outcomes = nil
	}
	if n := len(b.journal.effects); n != 2 {
		t.Errorf("%d effects, want 2", n)
	}
}
