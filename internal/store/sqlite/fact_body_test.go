package sqlite

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestFactsOfEarlierVersions checks that a fact or an entity is read the same whether its
// body has the columns too, as earlier versions wrote it, or not.
func TestFactsOfEarlierVersions(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := scope.Scope{Project: "p", User: "ana"}
	fact := func(id string) events.Fact {
		return events.Fact{
			ID: id, Revision: 3, Kind: events.FactSemantic, Category: "preference", Subject: "Ana", Predicate: "likes", Object: "tea " + id,
			Text: "Ana likes tea " + id, Hash: "hash of " + id, Confidence: 0.9, EventTime: at, CreatedAt: at, UpdatedAt: at, ValidFrom: at,
		}
	}
	want := []events.Fact{fact("a"), fact("b")}
	earlier := []events.Fact{fact("a"), fact("b")}
	for i := range earlier {
		earlier[i].Revision, earlier[i].Subject, earlier[i].Predicate, earlier[i].Hash = 2, "Anna", "liked", "older hash"
	}
	people := []events.Entity{{ID: "ent_a", CanonicalName: "Ana", LastUpdated: at}, {ID: "ent_b", CanonicalName: "Ben", LastUpdated: at}}
	err := s.write(t.Context(), func(w *writer) error {
		row, err := w.makeScope(owner)
		if err != nil {
			return err
		}
		for _, f := range want {
			prepared, err := prepareFact(f)
			if err != nil {
				return err
			}
			if err := w.putFacts(row, []newFact{prepared}); err != nil {
				return err
			}
		}
		body, err := json.Marshal(want[0])
		if err != nil {
			return err
		}
		if err := w.exec(`UPDATE facts SET body = ? WHERE id = 'a'`, string(body)); err != nil {
			return err
		}
		if err := w.putVersions(row, earlier); err != nil {
			return err
		}
		if body, err = json.Marshal(earlier[0]); err != nil {
			return err
		}
		if err := w.exec(`UPDATE versions SET body = ? WHERE id = 'a'`, string(body)); err != nil {
			return err
		}
		if err := w.putEntities(row, people); err != nil {
			return err
		}
		if body, err = json.Marshal(people[0]); err != nil {
			return err
		}
		return w.exec(`UPDATE entities SET body = ? WHERE id = 'ent_a'`, string(body))
	})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.Snapshot(t.Context(), owner)
	if diff := cmp.Diff(want, snap.Facts); err != nil || diff != "" {
		t.Errorf("exported, %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(earlier, snap.Versions); diff != "" {
		t.Errorf("exported versions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(people, snap.Entities); diff != "" {
		t.Errorf("exported entities (-want +got):\n%s", diff)
	}
	for i, f := range want {
		versions, err := s.Versions(t.Context(), scope.Exactly(owner), f.ID)
		if err != nil || len(versions) != 2 {
			t.Fatal(versions, err)
		}
		if diff := cmp.Diff([]events.Fact{earlier[i], f}, []events.Fact{versions[0].Fact, versions[1].Fact}); diff != "" {
			t.Errorf("its versions (-want +got):\n%s", diff)
		}
		got, err := s.FactsByID(t.Context(), owner, []string{f.ID})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		if diff := cmp.Diff(f, got[0].Fact); diff != "" {
			t.Errorf("by id (-want +got):\n%s", diff)
		}
	}
	bodies, err := bodies[map[string]any](t.Context(), s.reads, `SELECT body FROM facts WHERE id = 'b'`)
	if err != nil || len(bodies) != 1 {
		t.Fatal(bodies, err)
	}
	for _, column := range []string{"id", "revision", "hash", "subject", "predicate"} {
		if v, there := bodies[0][column]; there {
			t.Errorf("the body repeats a column: %s is %v", column, v)
		}
	}
}
