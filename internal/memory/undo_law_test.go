package memory

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/pkg/events"
)

// standing is what holds in a world: the facts that are not closed and the edges
// between entities that are not, without their places in the history.
func (w *world) standing() map[string]any {
	out := map[string]any{}
	for id, f := range w.facts {
		if f.ValidUntil != nil && !f.ValidUntil.After(f.ValidFrom) {
			continue
		}
		f.Revision, f.Supersedes = 0, nil
		out[id] = f
	}
	for id, e := range w.edges {
		if e.Type == events.EdgeRelation && e.ValidUntil == nil {
			out[id] = e
		}
	}
	for id, h := range w.holds {
		h.Rule = ""
		out[id] = h
	}
	return out
}

// undo takes the deltas at places back in a batch of its own, as the decider does, and
// returns where its deltas stand.
func (w *world) undo(t fataler, history *[]events.EffectCommitted, places map[Place]bool) map[Place]bool {
	t.Helper()
	about := map[string]bool{}
	for _, e := range *history {
		for _, a := range e.Applied {
			about[a.FactID] = true
		}
	}
	u := NewUndo(places, about)
	for _, e := range *history {
		u.Read(e)
	}
	steps, _ := u.Steps(func(string) bool { return true })
	var deltas events.Deltas
	for i, step := range steps {
		p := provenance(fmt.Sprintf("undo-%d-%d", len(*history), i), events.ReasonUndone)
		p.CandidateID, p.RequestID = "", "request"
		switch {
		case step.Hold != nil:
			p.CandidateID = step.Hold.ID
			deltas = append(deltas, must(events.NewAdd(p, events.FactPayload{Hold: step.Hold})))
		case step.HoldID != "":
			p.CandidateID = step.HoldID
			deltas = append(deltas, must(events.NewNoop(p, "")))
		case step.Restore == nil:
			deltas = append(deltas, must(events.NewDelete(p, []string{step.FactID})))
		default:
			deltas = append(deltas, must(events.NewUpdate(p, events.FactPayload{Fact: step.Restore}, []string{step.FactID})))
		}
	}
	b := batch()
	b.Command, b.Deltas, b.Candidates, b.Mentions = &events.CommandRef{RequestID: "request", Op: events.OpUndo}, deltas, nil, nil
	effects := w.commit(t, w.input(b))
	*history = append(*history, effects...)
	return placesOf(effects)
}

func placesOf(effects []events.EffectCommitted) map[Place]bool {
	out := map[Place]bool{}
	for _, e := range effects {
		for i := range e.Applied {
			out[Place{e.Revision, i}] = true
		}
	}
	return out
}

// unstamped drops what each version has of its own: when it was written.
func unstamped(standing map[string]any) map[string]any {
	for id, v := range standing {
		if f, ok := v.(events.Fact); ok {
			f.UpdatedAt = noon
			standing[id] = f
		}
	}
	return standing
}

// Undoing the newest batch restores what held before it; undoing the undo brings
// back what the batch made.
func TestUndoLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		var history []events.EffectCommitted
		for i := range rapid.IntRange(0, 3).Draw(t, "batches") {
			b := batch(drawDeltas(t)...)
			b.Range = events.Range{From: uint64(i), To: uint64(i + 1)}
			history = append(history, w.commit(t, w.input(b))...)
		}
		before := unstamped(w.standing())
		// One delta a fact: what an effect leaves between two of its own deltas on
		// one fact is not restored to the last bit.
		made := w.commit(t, w.input(batch(drawDeltas(t)...)))
		history = append(history, made...)
		after := unstamped(w.standing())
		undone := w.undo(t, &history, placesOf(made))
		if d := cmp.Diff(before, unstamped(w.standing())); d != "" {
			t.Fatalf("undo: %s", d)
		}
		w.undo(t, &history, undone)
		if d := cmp.Diff(after, unstamped(w.standing())); d != "" {
			t.Fatalf("undo of the undo: %s", d)
		}
	})
}
