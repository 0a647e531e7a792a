package retrieval

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// rankings draws legs over few ids, so that they meet.
func rankings(t *rapid.T) []leg {
	legs := make([]leg, rapid.IntRange(1, 4).Draw(t, "legs"))
	for i := range legs {
		legs[i] = leg{name: strconv.Itoa(i), weight: rapid.Float64Range(0.01, 5).Draw(t, "weight")}
		for _, id := range rapid.SliceOfNDistinct(rapid.IntRange(0, 12), 0, 13, rapid.ID[int]).Draw(t, "ids") {
			legs[i].hits = append(legs[i].hits, factHit(strconv.Itoa(id), 1))
		}
	}
	return legs
}

func scores(hits []Hit) map[string]float64 {
	out := map[string]float64{}
	for _, h := range hits {
		out[h.Fact.ID] = h.Score
	}
	return out
}

func TestFusionBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		legs := rankings(t)
		k, limit := rapid.Float64Range(0.1, 100).Draw(t, "k"), rapid.IntRange(1, 20).Draw(t, "limit")
		got := fuse(k, ties{salience: memory.SalienceV1{}}, legs, limit)
		distinct := map[string]bool{}
		for _, l := range legs {
			for _, h := range l.hits {
				distinct[h.Fact.ID] = true
			}
		}
		if len(got) != min(limit, len(distinct)) {
			t.Fatalf("%d hits of %d", len(got), len(distinct))
		}
		for i, h := range got {
			if !(h.Score > 0 && h.Score <= 1) || i > 0 && h.Score > got[i-1].Score {
				t.Fatalf("score %v at %d", h.Score, i)
			}
		}
		if !cmp.Equal(got, fuse(k, ties{salience: memory.SalienceV1{}}, legs, limit)) {
			t.Fatal("the same rankings give another answer")
		}
	})
}

// A document that rises in one ranking does not fall in the answer.
func TestFusionIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		legs := rankings(t)
		i := rapid.IntRange(0, len(legs)-1).Draw(t, "leg")
		if len(legs[i].hits) < 2 {
			t.Skip("nobody can rise")
		}
		at := rapid.IntRange(1, len(legs[i].hits)-1).Draw(t, "at")
		riser := legs[i].hits[at].Fact.ID
		before := fuse(60, ties{salience: memory.SalienceV1{}}, legs, 100)
		legs[i].hits = slices.Clone(legs[i].hits)
		legs[i].hits[at-1], legs[i].hits[at] = legs[i].hits[at], legs[i].hits[at-1]
		after := fuse(60, ties{salience: memory.SalienceV1{}}, legs, 100)
		if scores(after)[riser] <= scores(before)[riser] {
			t.Fatalf("%s rose from %d and fell from %v to %v", riser, at+1, scores(before)[riser], scores(after)[riser])
		}
		place := func(hits []Hit) int { return slices.IndexFunc(hits, func(h Hit) bool { return h.Fact.ID == riser }) }
		if place(after) > place(before) {
			t.Fatalf("%s fell from %d to %d", riser, place(before), place(after))
		}
	})
}

func TestFusionLeavesOutWhatFailed(t *testing.T) {
	t.Parallel()
	got := fuse(60, ties{salience: memory.SalienceV1{}}, []leg{{name: "a", weight: 1, found: found{hits: []store.Hit{factHit("x", 1)}}}, {name: "b", weight: 9, err: errDown}}, 5)
	if len(got) != 1 || got[0].Score != 1 {
		t.Errorf("%+v", got)
	}
}

func TestTies(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fact := func(id string, at time.Time, accesses uint64) store.Hit {
		return store.Hit{Fact: &store.Fact{Fact: events.Fact{ID: id}, LastAccessed: at, AccessCount: accesses}}
	}
	episode := func(id string, at time.Time) store.Hit {
		return store.Hit{Episode: &memory.Episode{ID: id, Timestamp: at}}
	}
	hits := []store.Hit{
		episode("old", now.Add(-time.Hour)), episode("new", now), fact("old", now.Add(-time.Hour), 0), fact("b", now, 0), fact("a", now, 0),
		fact("used", now.Add(-time.Hour), 3), fact("ancient", now.Add(-10_000*time.Hour), 9),
	}
	var legs []leg // each alone in its own, so that all tie
	for i, h := range hits {
		legs = append(legs, leg{name: strconv.Itoa(i), weight: 1, found: found{hits: []store.Hit{h}}})
	}
	for range 20 {
		var got []string
		for _, h := range fuse(60, ties{salience: memory.SalienceV1{}}, legs, 9) {
			got = append(got, keyOf(h.Hit)[:1]+ids(Results{Hits: []Hit{h}})[0])
		}
		if diff := cmp.Diff([]string{"fused", "fa", "fb", "fold", "fancient", "enew", "eold"}, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// With version 2 the recently read, the better trusted fact comes first.
func TestTiesOfVersion2(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fact := func(id string, days int, confidence float64) *fused {
		f := &store.Fact{Fact: events.Fact{ID: id, Confidence: confidence}, LastAccessed: now.AddDate(0, 0, -days)}
		return &fused{hit: store.Hit{Fact: f}, key: "f" + id, score: 0.5}
	}
	c := DefaultConfig()
	c.Salience, c.Tau = SalienceV2, 10*24*time.Hour
	hits := []*fused{fact("a", 20, 0.1), fact("b", 20, 0.9), fact("c", 1, 0.1), fact("d", 1, 0.1)}
	slices.SortFunc(hits, c.ties(now).compare)
	var got []string
	for _, h := range hits {
		got = append(got, h.hit.Fact.ID)
	}
	if diff := cmp.Diff([]string{"c", "d", "b", "a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Salience = "v9"
	if c.Validate() == nil {
		t.Error("an unknown version is accepted")
	}
}
