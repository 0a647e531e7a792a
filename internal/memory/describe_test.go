package memory

import (
	"maps"
	"slices"
	"testing"
	"time"

	"palimpsest/pkg/events"
)

// TestPlanSummaries: a summary reaches the entity as it is by now, and goes with a fact
// that it may rest on, and when the entity has outgrown it.
func TestPlanSummaries(t *testing.T) {
	t.Parallel()
	w := newWorld()
	told := func(id, text string) events.Delta { return addFact("d"+id, fact("f"+id, text, noon, "e"+id)) }
	one(t, w.commit(t, w.input(batch(told("1", "Anna works at Fenwick"), told("2", "Anna works at Tarn"), told("3", "Anna works at Ovid")))))
	anna := func() events.Entity {
		e, _ := Resolve(slices.Collect(maps.Values(w.entities)), "Anna", events.EntityPerson)
		return e
	}
	if at, due := DescribeAt(anna()); !due || !at.Equal(noon) {
		t.Fatalf("%+v is not due", anna())
	}
	describe := func() {
		seen := anna()
		seen.Summary, seen.MentionCount = "Anna has three employers.", 1 // as it was read long ago
		one(t, w.commit(t, w.input(batch(must(events.NewUpdate(provenance("s", events.ReasonRefinement, "e1"), events.FactPayload{Entity: &seen}, []string{seen.ID}))))))
		if e := anna(); e.Summary == "" || e.MentionCount < 3 {
			t.Fatalf("%+v", e)
		}
	}
	describe()
	if _, due := DescribeAt(anna()); due {
		t.Error("what has a summary is due")
	}
	one(t, w.commit(t, w.input(batch(updateFact("c", events.ReasonConfirmed, fact("f1", "Anna works at Fenwick", noon.Add(time.Minute), "e4"), "f1")))))
	if anna().Summary == "" {
		t.Error("a version with the same text takes the summary away")
	}
	one(t, w.commit(t, w.input(batch(deleteFacts("x", events.ReasonRequested, "f1")))))
	if anna().Summary != "" {
		t.Error("the summary outlives a fact")
	}
	describe()
	one(t, w.commit(t, w.input(batch(updateFact("u", events.ReasonRefinement, fact("f2", "Anna works at Brook", noon.Add(time.Hour), "e5"), "f2")))))
	if anna().Summary != "" {
		t.Error("the summary outlives what a fact said")
	}
	describe()
	for n := byte('5'); anna().MentionCount < 2*DescribeMentions; n++ {
		if anna().Summary == "" {
			t.Fatalf("gone at %d mentions", anna().MentionCount)
		}
		one(t, w.commit(t, w.input(batch(told(string(n), "Anna works at Firm "+string(n))))))
	}
	if anna().Summary != "" {
		t.Errorf("kept at %d mentions", anna().MentionCount)
	}
	gone := events.Entity{ID: "nobody", Summary: "Nobody."}
	e := one(t, w.commit(t, w.input(batch(must(events.NewUpdate(provenance("n", events.ReasonRefinement, "e1"), events.FactPayload{Entity: &gone}, []string{gone.ID}))))))
	if len(e.Entities) != 0 || e.Applied[0].Delta.Kind() != events.DeltaNoop {
		t.Errorf("of an entity that is not there: %+v", e)
	}
}
