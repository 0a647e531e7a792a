package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
	"palimpsest/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testEmbedder = embed.Info{Name: "test", Version: "1", Dimensions: 16}

func openAt(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	var plans planCheck
	storetest.RunAll(t, func(t *testing.T) store.Store {
		s := openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db"), Embedder: testEmbedder})
		t.Cleanup(func() { plans.check(t, s) })
		return s
	}, storetest.Options{
		Dimensions: testEmbedder.Dimensions,
		PutBack: func(t *testing.T, at time.Time) store.Store {
			t.Helper()
			return openAt(t, Config{Path: filepath.Join(t.TempDir(), "memory.db"), AccessedFrom: func() time.Time { return at }})
		},
		Skip: map[string]string{"Shares": "the file belongs to one process"},
		Reopen: func(t *testing.T, s store.Store) store.Store {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openAt(t, s.(*Store).cfg) //nolint:forcetypeassert // opened above
		},
	})
}
