package redis

import (
	"errors"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// TestOpenStoresFollowAPromotion checks that open stores go on in the generation
// that a rebuild promoted, once the writes that arrived meanwhile are restored,
// without being opened again.
func TestOpenStoresFollowAPromotion(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = 20 * time.Millisecond
	first := openNew(t, cfg)
	other := openAt(t, cfg)
	tell(t, first, "1", "hello 1")

	cfg.Building = true
	made := openAt(t, cfg)
	if _, err := Open(t.Context(), cfg); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a second construction: %v, want ErrLocked", err)
	}
	if last := tell(t, made, "1", "hello 1").LastOrdinal; last != 1 {
		t.Errorf("the next generation begins at %d", last)
	}
	tell(t, first, "2", "hello 2") // which the construction has not seen
	for _, s := range []*Store{first, other} {
		if err := s.Ping(t.Context()); err != nil || s.layout().generation != 1 {
			t.Errorf("before the switch: generation %d, %v", s.layout().generation, err)
		}
	}
	if err := made.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := made.Discard(t.Context()); err == nil {
		t.Error("the generation in use was discarded")
	}
	heal, _ := remedy("1", "2")
	var all sync.WaitGroup
	all.Go(func() { mend(t, made, heal) })
	all.Go(func() { mend(t, first, heal) })
	all.Go(func() { mend(t, other, store.Remedy{}) })
	all.Wait()
	if last := tell(t, other, "3", "hello 3").LastOrdinal; last != 3 {
		t.Errorf("the next episode is number %d, want 3", last)
	}
	for _, s := range []*Store{first, other, made} {
		hits, err := s.SearchText(t.Context(), selAna(), "hello", store.SearchQuery{Target: store.Episodes, Limit: 9})
		if err != nil || len(hits) != 3 || s.layout().generation != 2 {
			t.Errorf("generation %d: %d hits, %v", s.layout().generation, len(hits), err)
		}
	}
	if err := made.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := layout{cfg.Namespace, 1}
	if n, err := first.call(t.Context(), "EXISTS", gone.place(ana).state()); err != nil || n != int64(0) {
		t.Errorf("a row of the generation before: %v, %v", n, err)
	}
	reply, err := first.call(t.Context(), "FT.SEARCH", first.layout().alias(), "@k:{e}", "RETURN", 1, "c", "DIALECT", 2)
	if err != nil {
		t.Fatal(err)
	}
	if a := answerOf(reply); len(a.rows) != 3 {
		t.Errorf("the alias shows %+v", a)
	}
}

// TestWritersNeverSeeAPromotion checks that a write during a promotion either is
// asked to wait or lands in the new generation, and that none lands in the old one.
func TestWritersNeverSeeAPromotion(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = time.Hour // they detect the promotion by their writes
	s := openNew(t, cfg)
	cfg.Building = true
	made := openAt(t, cfg)
	if err := made.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), benchEffect("ana", 1), 1); !errors.Is(err, store.ErrLost) {
		t.Errorf("Apply before the mend: %v, want ErrLost", err)
	}
	heal, _ := remedy()
	mend(t, made, heal)
	if err := s.Apply(t.Context(), benchEffect("ana", 1), 1); err != nil {
		t.Fatal(err)
	}
	if state, err := made.State(t.Context(), scope.Scope{Project: "p", User: "ana"}); err != nil || state.Revision != 1 {
		t.Errorf("in the new generation: %+v, %v", state, err)
	}
}

// TestAConstructionThatWasBrokenOff is begun anew, from nothing.
func TestAConstructionThatWasBrokenOff(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	live := openNew(t, cfg)
	cfg.Building = true
	made := openAt(t, cfg)
	tell(t, made, "1", "hello")
	if err := made.Close(); err != nil {
		t.Fatal(err)
	}
	again := openAt(t, cfg)
	if last := tell(t, again, "2", "hello").LastOrdinal; last != 1 {
		t.Errorf("it begins at %d, want 1", last)
	}
	if err := again.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := live.call(t.Context(), "EXISTS", layout{cfg.Namespace, 2}.place(ana).state()); err != nil || n != int64(0) {
		t.Errorf("a row of the discarded generation: %v, %v", n, err)
	}
}

// TestANewerSchemaIsRefused at the open, and when a newer program has promoted it.
func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = 20 * time.Millisecond
	s := openNew(t, cfg)
	building := cfg
	building.Building = true
	made := openAt(t, building)
	if err := made.changeMeta(t.Context(), made.tenure(), func(m *meta) bool { m.Schema++; return true }); err != nil {
		t.Fatal(err)
	}
	if err := made.Promote(t.Context()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Promote: %v, want ErrNewer", err)
	}
	if _, err := Open(t.Context(), cfg); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Open: %v, want ErrNewer", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, store.ErrNewer) {
		t.Errorf("Ping: %v, want ErrNewer", err)
	}
	if _, err := s.PutEpisode(t.Context(), spoken("1")); !errors.Is(err, store.ErrNewer) {
		t.Errorf("PutEpisode: %v, want ErrNewer", err)
	}
}

func TestInherit(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	live := openNew(t, cfg)
	cfg.Building, cfg.AccessedFrom = true, time.Now
	made := openAt(t, cfg)
	later := time.Now().Add(time.Hour)
	for _, s := range []*Store{live, made} {
		if err := s.Apply(t.Context(), benchEffect("ana", 1), 1); err != nil {
			t.Fatal(err)
		}
	}
	claim := store.Claim{Range: events.Range{From: 0, To: 4}, At: said0, Attempt: 2}
	request := store.Request{Project: "p", Route: "r", Key: "k", BodyHash: "h", Status: 200, Body: []byte("yes"), Expires: later}
	for _, err := range []error{
		live.Touch(t.Context(), ana, []string{"f1-3"}, said0.Add(time.Hour)),
		live.PutCached(t.Context(), ana, "key", []byte("reply"), later),
		live.Finish(t.Context(), request),
		live.SetLastFire(t.Context(), "rule", said0),
		func() error { _, _, err := live.Claim(t.Context(), ana, "turn", store.Claim{}, claim); return err }(),
		made.Inherit(t.Context(), live),
		made.Seal(t.Context()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	facts, err := made.FactsByID(t.Context(), ana, []string{"f1-3", "f1-4"})
	want, _ := live.FactsByID(t.Context(), ana, []string{"f1-3", "f1-4"})
	if err != nil || len(want) != 2 || !facts[1].LastAccessed.Equal(want[1].LastAccessed) || len(facts) != 2 || facts[0].AccessCount != 1 || facts[0].Strength != want[0].Strength || facts[1].AccessCount != 0 {
		t.Errorf("accesses: %+v, %v", facts, err)
	}
	if got, err := made.Cached(t.Context(), ana, "key"); err != nil || string(got) != "reply" {
		t.Errorf("cached %q, %v", got, err)
	}
	if got, err := made.Begin(t.Context(), request); err != nil || got == nil || string(got.Body) != "yes" {
		t.Errorf("request %+v, %v", got, err)
	}
	if got, err := made.LastFire(t.Context(), "rule"); err != nil || !got.Equal(said0) {
		t.Errorf("fire %v, %v", got, err)
	}
	if look, err := made.Look(t.Context(), ana); err != nil || look.Claims["turn"] != claim {
		t.Errorf("claim %+v, %v", look.Claims, err)
	}
}
