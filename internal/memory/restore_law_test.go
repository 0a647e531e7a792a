package memory

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/pkg/events"
)

// content returns the content export of the valid rows of a world: facts without their
// place in the history, and the edges between entities.
func (w *world) content(t fataler) []string {
	t.Helper()
	s := Snapshot{Scope: alice, Revision: w.state.Revision}
	for _, f := range w.facts {
		f.Revision, f.Supersedes = 0, nil
		s.Facts = append(s.Facts, f)
	}
	for _, e := range w.entities {
		s.Entities = append(s.Entities, e)
	}
	for _, e := range w.edges {
		if e.Type == events.EdgeRelation {
			s.Edges = append(s.Edges, e)
		}
	}
	lines, err := Export(s, ExportContent)
	if err != nil {
		t.Fatalf("export: %v", err)
	}
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		out = append(out, string(l.JSON))
	}
	return out
}

// Restore after delete is identity on the content export.
func TestRestoreLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.commit(t, w.input(batch(drawDeltas(t)...)))
		f := fact("f9", "nine", noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "hours"))*time.Hour), "e1", "e2")
		f.Confidence = rapid.Float64Range(0, 1).Draw(t, "confidence")
		f.DecayRate = rapid.SampledFrom([]float64{0, 0.1, 2}).Draw(t, "rate")
		f.Category = rapid.SampledFrom([]string{"work", "event"}).Draw(t, "category")
		f.SessionIDs, f.Metadata = []string{"s", "s2"}, map[string]any{"channel": "mail"}
		restored := noon.Add(24 * time.Hour)
		if rapid.Bool().Draw(t, "has an end of its own") {
			end := restored.Add(time.Hour)
			f.ValidUntil = &end
		}
		w.commit(t, w.input(batch(addFact("add", f))))
		before := w.content(t)
		versions := w.facts["f9"].Revision
		reason := rapid.SampledFrom([]events.Reason{events.ReasonNegation, events.ReasonRequested, events.ReasonBelowThreshold}).Draw(t, "reason")
		w.commit(t, w.input(batch(deleteFacts("delete", reason, "f9"))))
		if rapid.Bool().Draw(t, "deleted twice") {
			b := batch(deleteFacts("earlier", reason, "f9"))
			b.Candidates[0].EventTime = noon.Add(-2 * time.Hour)
			w.commit(t, w.input(b))
		}
		if slices.Equal(before, w.content(t)) {
			t.Fatalf("nothing is deleted")
		}
		closed := w.facts["f9"]
		back := Restored(closed, restored)
		p := provenance("restore", events.ReasonRestored)
		p.CandidateID, p.RequestID, p.PromotionTS = "", "request", restored
		b := batch()
		b.Command = &events.CommandRef{RequestID: "request", Op: events.OpRestore}
		b.Deltas, b.Candidates, b.Mentions = events.Deltas{must(events.NewUpdate(p, events.FactPayload{Fact: &back}, []string{"f9"}))}, nil, nil
		w.commit(t, w.input(b))
		if d := cmp.Diff(before, w.content(t)); d != "" {
			t.Fatalf("before the delete and after the restore (-before +after):\n%s", d)
		}
		if f := w.facts["f9"]; f.Revision <= closed.Revision || closed.Revision <= versions || !StatedAt(f).Equal(restored) {
			t.Fatalf("the history tells of no delete and restore: %+v", f)
		}
	})
}
