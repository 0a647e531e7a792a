package sqlite

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/store"
	"palimpsest/internal/store/storetest"
	"palimpsest/pkg/scope"
)

// TestStoreWithoutRoomForVectors runs the suite where no vector stays in memory.
func TestStoreWithoutRoomForVectors(t *testing.T) {
	t.Parallel()
	const why = "covered by TestStore: no vectors"
	skip := map[string]string{"Shares": "the file belongs to one process"}
	for _, topic := range []string{"Episodes", "Ordinals", "Recent", "Sessions", "Schedule", "Claims", "Cursors", "Apply", "Versions", "Facts",
		"SearchText", "Requests", "Cache", "Outcomes", "Export", "Ledger", "Isolation", "Concurrency", "Health", "Reopen", "Erasure", "VectorsRefused"} {
		skip[topic] = why
	}
	storetest.RunAll(t, func(t *testing.T) store.Store {
		return openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db"), VectorMemory: 1})
	}, storetest.Options{Skip: skip, Dimensions: 19})
}

func TestDot(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 70).Draw(t, "n")
		draw := rapid.SliceOfN(rapid.Float32Range(-1, 1), n, n)
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		var want float64
		for i := range a {
			want += float64(a[i]) * float64(b[i])
		}
		if got := float64(dot(a, b)); math.Abs(got-want) > 1e-4 {
			t.Fatalf("dot = %g, want %g", got, want)
		}
	})
}

// TestRank holds any sequence of takes to sorting everything.
func TestRank(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var found scan
		var want []candidate
		for i := range rapid.IntRange(0, 40).Draw(t, "n") {
			score := rapid.IntRange(0, 5).Draw(t, "score")
			found.rows, found.scores = append(found.rows, int64(i)), append(found.scores, float32(score))
			want = append(want, candidate{float64(score), int64(i)})
		}
		slices.SortFunc(want, compareCandidates)
		var got []candidate
		for after := unbeaten; ; after = got[len(got)-1] {
			n := rapid.IntRange(1, 7).Draw(t, "take")
			list := found.rank(n, after)
			got = append(got, list...)
			if len(list) < n {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// TestReadsUseIndexes fails on a read whose cost would grow with everybody's
// rows: none may scan a table.
func TestReadsUseIndexes(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	for query, args := range map[string]int{
		selectEpisode + ` WHERE e.scope_id = ? AND e.ts > ? AND e.ts < ? AND (e.ts < ? OR e.ordinal <= ?) ORDER BY e.ts DESC, e.ordinal DESC LIMIT ?`:                          6,
		selectEpisode + ` WHERE e.place_id = ? AND e.ts > ? AND e.ts < ? AND (e.ts < ? OR e.ordinal <= ?) ORDER BY e.ts DESC, e.ordinal DESC LIMIT ?`:                          6,
		selectEpisode + ` WHERE e.scope_id = ? AND e.ordinal > ? AND e.ordinal <= ? ORDER BY e.ordinal`:                                                                        3,
		selectEpisode + ` WHERE e.place_id = ? AND e.ordinal < ? ORDER BY e.ordinal DESC LIMIT ?`:                                                                              3,
		selectFact + ` WHERE f.scope_id = ? AND (f.created_at, f.id) < (?, ?) AND f.archived_at IS NULL ORDER BY f.created_at DESC, f.id DESC LIMIT ?`:                         4,
		selectFact + ` WHERE f.id = ? AND s.project = ? AND s.user = ? ORDER BY s.key LIMIT 1`:                                                                                 3,
		selectSession + ` WHERE p.scope_id = ? AND p.ended_at IS NULL AND p.live = 1 AND p.session <> '' ORDER BY +p.session`:                                                  1,
		selectSession + ` WHERE p.ended_at IS NULL AND p.live = 1 AND p.session <> '' AND p.last_seen < ? AND (p.last_seen, p.id) > (?, ?) ORDER BY p.last_seen, p.id LIMIT ?`: 4,
		`SELECT p.scope_id FROM pending p WHERE p.rule = ? AND (p.project, p.key) > (?, ?) ORDER BY p.project, p.key LIMIT ?`:                                                  4,
	} {
		binds := make([]any, args)
		for i := range binds {
			binds[i] = 1
		}
		err := s.reads.each(t.Context(), "EXPLAIN QUERY PLAN "+query, binds, func(row scanner) error {
			var id, parent, unused int
			var detail string
			err := row.Scan(&id, &parent, &unused, &detail)
			if strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, "CONSTANT ROW") {
				t.Errorf("%s\n  %s", query, detail)
			}
			if strings.Contains(query, "ORDER BY +p.session") && strings.Contains(detail, " p ") && !strings.Contains(detail, "sessions_open") {
				t.Errorf("%s\n  %s", query, detail)
			}
			if strings.Contains(detail, "USE TEMP B-TREE") && !strings.Contains(query, "ORDER BY s.key") && !strings.Contains(query, "ORDER BY +p.session") {
				t.Errorf("%s\n  %s", query, detail)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}

// TestPlacesUseIndexes: of a project's scopes only those are read that match.
func TestPlacesUseIndexes(t *testing.T) {
	t.Parallel()
	s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db")})
	for index, sel := range map[string]scope.Selector{
		"scopes_by_user (project=? AND user=?)":             {Project: "p", User: new("u")},
		"scopes_by_user (project=? AND user=? AND agent=?)": {Project: "p", User: new("u"), Agent: new("a")},
		"scopes_by_agent (project=? AND agent=?)":           {Project: "p", Agent: new("a")},
	} {
		where, args := matchScopes(sel, true)
		for _, query := range []string{
			`SELECT ` + placeColumns + ` FROM scopes s WHERE ` + where + ` ` + byKey,
			`SELECT ` + placeColumns + ` FROM scopes s CROSS JOIN sessions p ON p.scope_id = s.id WHERE ` + where + ` AND p.session = 's' ` + byKey,
		} {
			var plan []string
			err := s.reads.each(t.Context(), "EXPLAIN QUERY PLAN "+query, args, func(row scanner) error {
				var id, parent, unused int
				var detail string
				err := row.Scan(&id, &parent, &unused, &detail)
				plan = append(plan, detail)
				return err
			})
			if err != nil || !strings.Contains(strings.Join(plan, "\n"), index) {
				t.Errorf("%s: %v\n%s", query, err, strings.Join(plan, "\n"))
			}
		}
	}
}
