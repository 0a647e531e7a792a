package consolidator

import (
	"errors"
	"slices"
	"testing"

	"palimpsest/pkg/events"
)

// TestStaleBatchThatCommittedIsSettled: the effect of a batch that died behind
// its append is on its own footprint, and must not send it back.
func TestStaleBatchThatCommittedIsSettled(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tick", "command"} {
		for _, step := range []string{"after append", "before apply", "after apply"} {
			f := &faults{step: step}
			m, j := newStore(), &memoryJournal{}
			b := benchOver(t, m, j)
			b.must(t, b.decided("quick", add(t, tea)))
			in := b.coffee(t)
			in.Data.Episodes = []events.EpisodeRef{{ID: "e-coffee", Ordinal: 1, CorrelationID: "r-1"}}
			if kind == "command" {
				in = asked(in)
			}
			b.must(t, b.decided("quick"))
			m.faults, j.faults = f, f
			if _, err := b.commit(t.Context(), in); !errors.Is(err, errCrash) {
				t.Fatalf("%s, %s: %v", kind, step, err)
			}
			in.Delivery = 2
			out := b.must(t, in)
			if sentBack(out) || len(j.effects) != 3 || m.facts["coffee"].Revision != 1 || !slices.Contains(announced(out), "r-1") {
				t.Errorf("%s, %s: out %+v, %d effects", kind, step, out, len(j.effects))
			}
		}
	}
}

func TestCommittedCommandIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := asked(b.coffee(t))
	b.must(t, in)
	b.must(t, b.decided("quick", closing(t, "coffee")))
	in.Delivery = 2
	if out := b.must(t, in); !slices.Equal(announced(out), []string{"r-1"}) || len(b.journal.effects) != 2 {
		t.Errorf("out %+v, %d effects", out, len(b.journal.effects))
	}
}

// A command that names revisions carries no basis, and another revision is a
// conflict.
func TestNamedRevisionIsAConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, turn(t, 1, 0, "f1"))
	b.must(t, b.decided("quick", rewrite(t, "f1", like("f1", "another text"))))
	if out := b.must(t, remove(t, "f1", 1)); sentBack(out) || b.store.outcomes[len(b.store.outcomes)-1].Conflict == "" {
		t.Errorf("out %+v, outcomes %+v", out, b.store.outcomes)
	}
}

// A store whose effects AUDIT lost can commit nothing, and says why.
func TestStoreAheadOfAuditIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, turn(t, 1, 0, "f1"))
	b.must(t, turn(t, 2, 1, "f2"))
	b.journal.effects = b.journal.effects[:1]
	if _, err := b.commit(t.Context(), turn(t, 3, 2, "f3")); !errors.Is(err, ErrAhead) {
		t.Errorf("err = %v, want %v", err, ErrAhead)
	}
}
