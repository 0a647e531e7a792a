package redis

import (
	"errors"
	"strings"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/store/storetest"
	"palimpsest/internal/testengine/redisserver"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestP10NoByteIsLeftInTheServer: neither the snapshot nor the append-only file of a
// server holds the text of an erased user; an older generation is gone too.
func TestP10NoByteIsLeftInTheServer(t *testing.T) {
	t.Parallel()
	server := redisserver.Launch(t, "--rdbcompression", "no")
	cfg := Config{URL: server.URL(), Embedder: testEmbedder}
	s := openAt(t, cfg)
	storetest.FillErasure(t, s, testEmbedder.Dimensions)
	older := s.place(scope.Scope{Project: "p", User: "x"})
	older.base = (&tenure{layout: layout{s.cfg.Namespace, 7}}).place(older.fact).base
	if _, err := s.call(t.Context(), "SET", older.base+"c:k", storetest.Marker); err != nil {
		t.Fatal(err)
	}
	server.Do("SAVE")
	if before := server.Holding(storetest.Marker); len(before) < 2 {
		t.Fatalf("the marker is in %v to begin with, want the snapshot and the append-only file", before)
	}
	for _, project := range []string{"p", "other"} {
		whom := memory.Whom{Project: project, Is: func(user string) bool { return user == storetest.Marker }}
		done, err := s.Erase(t.Context(), whom)
		if err != nil || done.Scopes != 1 || done.Facts != 1 || len(done.Beyond) > 0 {
			t.Errorf("erased %+v: %v", done, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if left := server.Holding(storetest.Marker); len(left) > 0 {
		t.Errorf("the marker is in %v", left)
	}
}

// TestErasureFindsRowsWithoutState: a deletion that a death interrupted, or damage,
// leaves rows whose scope has no state.
func TestErasureFindsRowsWithoutState(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	if _, err := s.call(t.Context(), "DEL", s.place(ana).state()); err != nil {
		t.Fatal(err)
	}
	whom := memory.Whom{Project: "p", Is: func(user string) bool { return user == "ana" }}
	if left, err := s.Scan(t.Context(), whom); left != 1 || err != nil {
		t.Errorf("a scan finds %d scopes: %v", left, err)
	}
	if done, err := s.Erase(t.Context(), whom); err != nil || done.Episodes != 1 {
		t.Errorf("erased %+v: %v", done, err)
	}
	if left, err := s.Scan(t.Context(), whom); left != 0 || err != nil {
		t.Errorf("a scan finds %d scopes: %v", left, err)
	}
}

// TestErasedScopeRefusesOlderWork: a scope of an erased user begins with the
// incarnation of the tombstone.
func TestErasedScopeRefusesOlderWork(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Born = func(_, user string) uint64 { return map[string]uint64{"ana": 2}[user] }
	s := openNew(t, cfg)
	if st := tell(t, s, "1", "hello"); st.Incarnation != 2 {
		t.Errorf("a scope of an erased user is born with incarnation %d, want 2", st.Incarnation)
	}
	old := events.EffectCommitted{Header: events.Header{Scope: ana, Incarnation: 1}, Rule: "turn", Revision: 1, CommittedAt: said0}
	if err := s.Apply(t.Context(), old, 1); !errors.Is(err, store.ErrIncarnation) {
		t.Errorf("an effect of an older incarnation: %v", err)
	}
}

// TestErasureLeavesTheWaitQueueOfOthers: entries of the user are taken out, those of the same
// name in another project stay.
func TestErasureLeavesTheWaitQueueOfOthers(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	namesake := s.place(scope.Scope{Project: "other", User: "ana"})
	if err := s.list(t.Context(), s.tenure(), namesake.pending(), namesake.idle("s", 1), namesake.due("h", 1),
		s.place(ana).due("h", 1), "c p turn "+ana.Key() /* of an earlier version */); err != nil {
		t.Fatal(err)
	}
	whom := memory.Whom{Project: "p", Is: func(user string) bool { return user == "ana" }}
	if _, err := s.Erase(t.Context(), whom); err != nil {
		t.Fatal(err)
	}
	left, err := s.call(t.Context(), "ZRANGE", s.layout().waitQueue(), 0, -1)
	if list := texts(left); err != nil || len(list) != 3 || strings.Contains(strings.Join(list, ""), ordered("p")+" ") {
		t.Errorf("the wait queue has %q: %v", list, err)
	}
}
