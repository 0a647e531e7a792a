package recovery

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/ingest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func openStore(t *testing.T) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "memory.db"), Building: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func settle(t *testing.T, st *sqlite.Store) {
	t.Helper()
	if err := st.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// write puts episodes from..to-1 into each of three scopes of two projects.
func write(t *testing.T, st *sqlite.Store, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		for _, s := range []scope.Scope{
			{Project: "p", User: "ann", Session: fmt.Sprint(i % 3)}, {Project: "p", User: "bob"}, {Project: "q", User: "ann"},
		} {
			at := noon.Add(time.Duration(i) * time.Second)
			_, err := st.PutEpisode(t.Context(), memory.Episode{
				ID: fmt.Sprint(i), Source: "app", Scope: s, Role: events.RoleUser, Content: fmt.Sprintf("number %d", i), Timestamp: at, ArrivedAt: at,
				Seq: uint64(i + 1),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	settle(t, st)
}

func never(context.Context, uint64) (bool, error) { return false, nil }

func TestAdoptKeepsOrdinals(t *testing.T) {
	t.Parallel()
	const n = pageSize + 7
	live, made := openStore(t), openStore(t)
	write(t, live, 0, n)
	same := func() compared {
		t.Helper()
		got, err := compare(t.Context(), live, made, never)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := same(); got != (compared{Moved: 3 * n, Lacking: 3 * n}) {
		t.Errorf("an empty store: %+v", got)
	}
	read := 0
	copied, err := adopt(t.Context(), live, made, n, func() { read++ })
	if err != nil {
		t.Fatal(err)
	}
	settle(t, made)
	if got := same(); got != (compared{}) || read != 3*n || copied.Episodes != 3*n {
		t.Errorf("%+v of %d and %d copied", got, read, copied.Episodes)
	}
	write(t, live, n, n+1)
	if got := same(); got != (compared{Moved: 3, Lacking: 3}) {
		t.Errorf("three more: %+v", got)
	}
	stored := func(context.Context, uint64) (bool, error) { return true, nil }
	if got, err := compare(t.Context(), live, made, stored); err != nil || got != (compared{Moved: 3}) {
		t.Errorf("three more that EPISODES has: %+v, %v", got, err)
	}
	write(t, made, n, n+2)
	if got := same(); got != (compared{}) {
		t.Errorf("%+v: what comes behind does not matter", got)
	}
}

// TestAdoptLeavesGaps: places without an episode stay free, also behind the
// newest. An episode above the end of EPISODES is in no stream.
func TestAdoptLeavesGaps(t *testing.T) {
	t.Parallel()
	live, made := openStore(t), openStore(t)
	bob := scope.Scope{Project: "p", User: "bob"}
	write(t, live, 0, 2)
	if err := live.CountFrom(t.Context(), bob, 4); err != nil {
		t.Fatal(err)
	}
	write(t, live, 2, 4)
	if err := live.CountFrom(t.Context(), bob, 9); err != nil {
		t.Fatal(err)
	}
	settle(t, live)
	if _, err := adopt(t.Context(), live, made, 3, func() {}); err != nil {
		t.Fatal(err)
	}
	settle(t, made)
	got := map[uint64]uint64{}
	page, err := made.EpisodeRange(t.Context(), bob, events.Range{From: 0, To: 9})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page {
		got[e.Ordinal] = e.Seq
	}
	if diff := cmp.Diff(map[uint64]uint64{1: 1, 2: 2, 5: 3, 6: 0}, got); diff != "" {
		t.Errorf("sequences by ordinal (-want +got):\n%s", diff)
	}
	if state, err := made.State(t.Context(), bob); err != nil || state.LastOrdinal != 9 {
		t.Errorf("state %+v, %v", state, err)
	}
}

// broken is a store of which some places cannot be read.
type broken struct {
	*sqlite.Store
	places []uint64
}

func (b broken) EpisodeRange(ctx context.Context, fact scope.Scope, r events.Range) ([]memory.Episode, error) {
	if fact.User == "bob" && slices.ContainsFunc(b.places, func(at uint64) bool { return at > r.From && at <= r.To }) {
		return nil, fmt.Errorf("page 7: %w", store.ErrDamaged)
	}
	return b.Store.EpisodeRange(ctx, fact, r)
}

func TestAdoptReadsAroundDamage(t *testing.T) {
	t.Parallel()
	live, made := openStore(t), openStore(t)
	write(t, live, 0, 50)
	copied, err := adopt(t.Context(), broken{live, []uint64{1, 17, 18, 50}}, made, 50, func() {})
	if err != nil || copied != (adopted{Episodes: 146, Unreadable: 4}) {
		t.Errorf("%+v, %v", copied, err)
	}
	settle(t, made)
	write(t, made, 50, 51)
	got, err := compare(t.Context(), broken{live, []uint64{1, 17, 47}}, made, never)
	if err != nil || got != (compared{Moved: 2, Lacking: 2, Unreadable: 3, Lost: 2}) {
		t.Errorf("compared %+v, %v", got, err)
	}
}

// TestCopyScopeKeepsEverything that the export has, though no effect is left, and
// takes out holds that are gone.
func TestCopyScopeKeepsEverything(t *testing.T) {
	t.Parallel()
	live, made := openStore(t), openStore(t)
	fact := scope.Scope{Project: "p", User: "ann"}
	effects := story(fact, 70)
	for _, e := range effects {
		if err := live.Apply(t.Context(), e, 10*e.Revision); err != nil {
			t.Fatal(err)
		}
		if e.Revision > 3 {
			continue
		}
		if err := made.Apply(t.Context(), e, 10*e.Revision); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, live)
	settle(t, made)
	if copied, err := copyScope(t.Context(), live, made, fact); !copied || err != nil {
		t.Fatal(copied, err)
	}
	settle(t, made)
	for range 2 {
		want, err := store.Digest(t.Context(), live, memory.ExportFull)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := store.Digest(t.Context(), made, memory.ExportFull); err != nil || got != want {
			t.Errorf("digest %s, %v; want %s", got, err, want)
		}
		have, err := made.State(t.Context(), fact)
		if err != nil {
			t.Fatal(err)
		}
		state, err := live.State(t.Context(), fact)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(state, have); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		if copied, err := copyScope(t.Context(), live, made, fact); copied || err != nil {
			t.Errorf("copied again: %v, %v", copied, err)
		}
	}
}

// story is n effects: a fact each, entities, edges and a hold that comes and goes,
// under two rules.
func story(fact scope.Scope, n uint64) (out []events.EffectCommitted) {
	for i := uint64(1); i <= n; i++ {
		at := noon.Add(time.Duration(i) * time.Minute)
		f := events.Fact{
			ID: fmt.Sprintf("fact%d", i), Revision: 2, Text: fmt.Sprintf("Ann lives in town %d.", i), Hash: fmt.Sprintf("hash%d", i),
			Kind: events.FactSemantic, EventTime: at, CreatedAt: at, UpdatedAt: at, ValidFrom: at, Confidence: 0.5,
		}
		earlier := f
		earlier.Revision = 1
		e := events.EffectCommitted{
			Header: events.Header{Scope: fact}, Revision: i, Rule: []string{"turn", "sleep"}[i%2], CommittedAt: at, Watermark: &i,
			Facts: []events.Fact{f}, Versions: []events.Fact{earlier},
			Entities: []events.Entity{{ID: fmt.Sprintf("entity%d", i), CanonicalName: fmt.Sprintf("Town %d", i), FirstSeen: at, LastUpdated: at}},
			Holds:    []events.Hold{{ID: fmt.Sprintf("hold%d", i), HeldAt: at}},
		}
		if i > 1 {
			e.Released = []string{fmt.Sprintf("hold%d", i-1)}
		}
		out = append(out, e)
	}
	return out
}

// TestEmbedAllLeavesNothing, however many rounds it takes.
func TestEmbedAllLeavesNothing(t *testing.T) {
	t.Parallel()
	const n = 180
	st := openStore(t)
	write(t, st, 0, n)
	said, err := ingest.New(ingest.Config{}, ingest.Deps{Episodes: st, Cursors: st, Shares: st, Vectors: st, Embedders: embed.Only(local.New())})
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	if err := said.EmbedAll(t.Context(), st.Settle, func(some int) { done += some }); err != nil {
		t.Fatal(err)
	}
	stats, err := st.Stats(t.Context())
	if err != nil || stats.VectorsPending != 0 || done != 3*n {
		t.Errorf("%d embedded of %d, %d left, %v", done, 3*n, stats.VectorsPending, err)
	}
}
