package sqlite

import (
	"context"
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

// TestSlab holds the contiguous form to a map.
func TestSlab(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const n = 3
		sl := &slab{at: map[int64]int{}}
		want := map[int64]float32{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			row := rapid.Int64Range(1, 9).Draw(t, "row")
			if rapid.Bool().Draw(t, "drop") {
				sl.set(change{row: row})
				delete(want, row)
				continue
			}
			x := rapid.Float32Range(-1, 1).Draw(t, "x")
			sl.set(change{row, []float32{x, 0, 0}})
			want[row] = x
		}
		var found scan
		sl.scan(&found, []float32{1, 0, 0})
		if len(found.rows) != len(want) || len(found.scores) != len(want) || len(sl.values) != n*len(want) {
			t.Fatalf("%d rows, %d values, want %d", len(found.rows), len(sl.values), len(want))
		}
		for i, row := range found.rows {
			if found.scores[i] != want[row] {
				t.Fatalf("row %d scores %g, want %g", row, found.scores[i], want[row])
			}
		}
	})
}

func TestDrawerMakesRoom(t *testing.T) {
	t.Parallel()
	const n = 100
	d := newVectorCache(3 * (n*4*2 + 32))
	loads := map[int64]int{}
	use := func(id int64) {
		t.Helper()
		_, err := d.open(t.Context(), slabKey{store.Facts, id}, func(_ context.Context, sl *slab) error {
			loads[id]++
			sl.add(1, make([]float32, n))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for id := range int64(20) {
		use(id)
		use(0)
	}
	if loads[0] != 1 {
		t.Errorf("the one in use was loaded %d times", loads[0])
	}
	use(1)
	if loads[1] != 2 {
		t.Errorf("the least used was loaded %d times, want 2", loads[1])
	}
	if d.used > d.budget || len(d.slabs) != d.recent.Len() {
		t.Errorf("%d bytes of %d in %d slabs", d.used, d.budget, len(d.slabs))
	}
}

func TestLoadOutlivesAnImpatientCaller(t *testing.T) {
	t.Parallel()
	d := newVectorCache(1 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	load := func(ctx context.Context, _ *slab) error {
		calls++
		if calls == 1 {
			cancel()
		}
		return ctx.Err()
	}
	if _, err := d.open(ctx, slabKey{store.Facts, 1}, load); err == nil {
		t.Error("a cancelled load was taken")
	}
	if _, err := d.open(t.Context(), slabKey{store.Facts, 1}, load); err != nil {
		t.Errorf("the next caller: %v", err)
	}
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
		`SELECT count(*) FROM claims WHERE project = ? AND under_way = 1`:                                                                                                      1,
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
