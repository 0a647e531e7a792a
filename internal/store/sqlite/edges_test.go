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

// TestEdgesOfEarlierVersions checks that an edge is read the same whether its body has the
// columns too, as earlier versions wrote it, or not.
func TestEdgesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner := scope.Scope{Project: "p", User: "ana"}
	edge := func(id string) events.Edge {
		return events.Edge{
			ID: id, SourceID: "ent_a", TargetID: "ent_" + id, Type: events.EdgeRelation, Predicate: "likes",
			Weight: 1, Confidence: 0.9, Evidence: []string{"f1"}, ValidFrom: at, CreatedAt: at,
		}
	}
	old, now := edge("b"), edge("c")
	err := s.write(t.Context(), func(w *writer) error {
		row, err := w.makeScope(owner)
		if err != nil {
			return err
		}
		body, err := json.Marshal(old)
		if err != nil {
			return err
		}
		if err := w.exec(`INSERT INTO edges (scope_id, id, source_id, target_id, body) VALUES (?, ?, ?, ?, ?)`,
			row.id, old.ID, old.SourceID, old.TargetID, string(body)); err != nil {
			return err
		}
		return w.putEdges(row, []events.Edge{now})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, nodes := range [][]string{nil, {"ent_a"}} {
		got, err := s.Edges(t.Context(), owner, nodes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]events.Edge{old, now}, got); diff != "" {
			t.Errorf("edges of %v (-want +got):\n%s", nodes, diff)
		}
	}
	bodies, err := bodies[map[string]any](t.Context(), s.reads, `SELECT body FROM edges WHERE id = 'c'`)
	if err != nil || len(bodies) != 1 {
		t.Fatal(bodies, err)
	}
	for _, column := range []string{"id", "source_id", "target_id"} {
		if v, there := bodies[0][column]; there {
			t.Errorf("the body repeats a column: %s is %v", column, v)
		}
	}
}
