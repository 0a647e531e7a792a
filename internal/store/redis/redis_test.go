package redis

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/redistest"
	"palimpsest/internal/store"
	"palimpsest/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redistest.Tests{M: m}) }

var testEmbedder = embed.Info{Name: "test", Version: "1", Dimensions: 16}

var namespaces atomic.Int64

// testConfig names a namespace of its own on the server that the environment
// names, or on the double.
func testConfig(t testing.TB) Config {
	t.Helper()
	namespace := fmt.Sprintf("test-%d-%d", os.Getpid(), namespaces.Add(1))
	return Config{URL: redistest.URL(t), Namespace: namespace, Embedder: testEmbedder}
}

func openAt(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, is := t.(*testing.T); is { // what benchmarks compare with is of no store
		s.client.AddHook(recordedOnly{t})
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// openNew opens an empty store; its rows are gone after the test.
func openNew(t testing.TB, cfg Config) *Store {
	t.Helper()
	t.Cleanup(func() { wipe(t, cfg) })
	return openAt(t, cfg)
}

func wipe(t testing.TB, cfg Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := connect(cfg.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for generation := uint64(1); generation < 4; generation++ {
		_ = client.Do(ctx, "FT.DROPINDEX", layout{cfg.Namespace, generation}.index()).Err()
	}
	s := &Store{cfg: cfg, client: client}
	if err := s.eachMatching(ctx, cfg.Namespace+":*", removeKeys); err != nil {
		t.Error(err)
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.RunAll(t, func(t *testing.T) store.Store {
		return openNew(t, testConfig(t))
	}, storetest.Options{
		Dimensions: testEmbedder.Dimensions,
		Reopen: func(t *testing.T, s store.Store) store.Store {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return openAt(t, s.(*Store).cfg) //nolint:forcetypeassert // opened above
		},
	})
}
