package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/testengine/redisserver"
	"palimpsest/pkg/events"
)

// ownConfig opens stores on a server of the test's own; a short pulse keeps tests
// short.
func ownConfig(l *redisserver.Server) Config {
	return Config{URL: l.URL(), Embedder: testEmbedder, Pulse: 20 * time.Millisecond}
}

// await asks until holds says yes.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); !holds(); <-ticker.C {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

func spoken(id string) memory.Episode {
	full := ana
	full.Session = "s"
	return memory.Episode{ID: id, Source: "app", Scope: full, Role: events.RoleUser, Content: "hello " + id, Timestamp: said0, ArrivedAt: said0}
}

func lost(s *Store) bool { return isClosed(s.Lost()) }

// refusesAll tells what of a store that is lost still takes writes.
func refusesAll(t *testing.T, s *Store) {
	t.Helper()
	_, put := s.PutEpisode(t.Context(), spoken("new"))
	_, _, claim := s.Claim(t.Context(), ana, "turn", store.Claim{}, store.Claim{Range: events.Range{To: 1}, At: said0, Attempt: 1})
	for name, err := range map[string]error{
		"put": put, "apply": s.Apply(t.Context(), benchEffect("ana", 1), 1), "claim": claim, "ping": s.Ping(t.Context()),
	} {
		if !errors.Is(err, store.ErrLost) {
			t.Errorf("%s: %v, want ErrLost", name, err)
		}
	}
}

// remedy stores episodes again and counts how often it was asked.
func remedy(ids ...string) (store.Remedy, *atomic.Int64) {
	asked := new(atomic.Int64)
	return store.Remedy{
		Episodes: func(ctx context.Context, through store.Store) error {
			asked.Add(1)
			for _, id := range ids {
				if _, err := through.PutEpisode(ctx, spoken(id)); err != nil {
					return err
				}
			}
			return nil
		},
		Effects: func(ctx context.Context, through store.Store) error {
			asked.Add(1)
			return through.Advance(ctx, ana)
		},
	}, asked
}

func mend(t *testing.T, s *Store, r store.Remedy) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Mend(ctx, r); err != nil {
		t.Fatal(err)
	}
	if lost(s) {
		t.Fatal("a mended store is lost")
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestP1ServerComesBackWithLess checks for each way in which a server loses
// acknowledged writes that all stores detect it, that nothing is written before the
// lost data is restored, and that every ordinal is then the same as before.
func TestP1ServerComesBackWithLess(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(l *redisserver.Server, restore func()){
		"an older copy": func(l *redisserver.Server, restore func()) {
			l.Kill()
			restore()
			l.Start()
		},
		"nothing of it": func(l *redisserver.Server, _ func()) { l.Do("FLUSHALL") },
		"killed, and all there": func(l *redisserver.Server, _ func()) {
			l.Kill()
			l.Start()
		},
		"its rows are older though it never went away": func(l *redisserver.Server, _ func()) {
			l.Do("HSET", DefaultConfig().Namespace+":witness", "era", "OLDER", "parent", "OLDEST")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := redisserver.Launch(t)
			one, two := openAt(t, ownConfig(l)), openAt(t, ownConfig(l))
			tell(t, one, "1", "hello 1")
			restore := l.Copy()
			tell(t, one, "2", "hello 2")
			forget(l, restore)
			await(t, "one to notice", func() bool { return lost(one) })
			await(t, "two to notice", func() bool { return lost(two) })
			refusesAll(t, one)
			refusesAll(t, two)
			heal, asked := remedy("1", "2")
			var both sync.WaitGroup
			both.Go(func() { mend(t, one, heal) })
			both.Go(func() { mend(t, two, store.Remedy{}) })
			both.Wait()
			if n := asked.Load(); n < 2 {
				t.Errorf("%d parts were put back", n)
			}
			if last := tell(t, two, "3", "hello 3").LastOrdinal; last != 3 {
				t.Errorf("the next episode is number %d, want 3", last)
			}
			hits, err := one.SearchText(t.Context(), selAna(), "hello", store.SearchQuery{Target: store.Episodes, Limit: 9})
			if err != nil || len(hits) != 3 {
				t.Errorf("%d hits, %v", len(hits), err)
			}
		})
	}
}

// TestOpenOnAServerThatCameBack checks that a store is lost from the start if its
// server restarted while no process had it open, and is not lost if the server ran
// on.
func TestOpenOnAServerThatCameBack(t *testing.T) {
	t.Parallel()
	l := redisserver.Launch(t)
	tell(t, openAt(t, ownConfig(l)), "1", "hello 1")
	if lost(openAt(t, ownConfig(l))) {
		t.Error("lost, though the server ran on")
	}
	l.Kill()
	l.Start()
	s := openAt(t, ownConfig(l))
	if !lost(s) {
		t.Fatal("whole, though the server was started again")
	}
	refusesAll(t, s)
	heal, _ := remedy("1")
	mend(t, s, heal)
	if last := tell(t, s, "2", "hello 2").LastOrdinal; last != 2 {
		t.Errorf("the next episode is number %d, want 2", last)
	}
}

// TestP1ReadWholeMissesNothing: reads during which rows were lost are refused, also
// where the loss was put back before they ended.
func TestP1ReadWholeMissesNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = time.Hour // it meets the loss by itself
	s, other := openNew(t, cfg), openAt(t, cfg)
	tell(t, s, "1", "hello 1")
	loss := func() error {
		return other.client.HSet(t.Context(), s.epochRecordKey(), "lost", "token").Err()
	}
	own := errors.New("of the read")
	for _, c := range []struct {
		name string
		read func() error
		want error
	}{
		{"nothing is lost", func() error { return nil }, nil},
		{"the read fails", func() error { return own }, own},
		{"rows are lost", loss, store.ErrLost},
		{"others mend", func() error { return nil }, store.ErrLost},
		{"it is mended meanwhile", func() error {
			heal, _ := remedy("1")
			mend(t, other, heal)
			return nil
		}, store.ErrLost},
		{"it is mended", func() error { return nil }, nil},
	} {
		if err := s.ReadWhole(t.Context(), c.read); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// TestLostAgainWhileMended checks that data which was restored before the server was
// lost once more is restored again.
func TestLostAgainWhileMended(t *testing.T) {
	t.Parallel()
	l := redisserver.Launch(t)
	s := openAt(t, ownConfig(l))
	tell(t, s, "1", "hello 1")
	l.Do("FLUSHALL")
	await(t, "the loss", func() bool { return lost(s) })
	heal, asked := remedy("1")
	again := heal.Episodes
	heal.Episodes = func(ctx context.Context, through store.Store) error {
		err := again(ctx, through)
		if asked.Load() == 1 {
			l.Do("FLUSHALL")
		}
		return err
	}
	mend(t, s, heal)
	if n := asked.Load(); n != 3 {
		t.Errorf("%d parts were put back, want 3", n)
	}
	if last := tell(t, s, "2", "hello 2").LastOrdinal; last != 2 {
		t.Errorf("the next episode is number %d, want 2", last)
	}
}

// TestAFailedRemedyLeavesTheStoreLost, and the next one has the same to do.
func TestAFailedRemedyLeavesTheStoreLost(t *testing.T) {
	t.Parallel()
	l := redisserver.Launch(t)
	s := openAt(t, ownConfig(l))
	l.Do("FLUSHALL")
	await(t, "the loss", func() bool { return lost(s) })
	broken := errors.New("broken")
	err := s.Mend(t.Context(), store.Remedy{Episodes: func(context.Context, store.Store) error { return broken }})
	if !errors.Is(err, broken) || !lost(s) {
		t.Errorf("Mend: %v, lost: %t", err, lost(s))
	}
	heal, asked := remedy()
	mend(t, s, heal)
	if asked.Load() != 2 {
		t.Errorf("%d parts were put back, want 2", asked.Load())
	}
}

// TestP1KilledAmongApplies: with an append-only file that is synced always, every
// effect that was acknowledged is there after a kill -9, and with one that is
// synced each second it is there too or is noticed; then it is put back.
func TestP1KilledAmongApplies(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"always", "everysec"} {
		t.Run(sync, func(t *testing.T) {
			t.Parallel()
			l := redisserver.Launch(t, "--appendfsync", sync)
			s := openAt(t, ownConfig(l))
			var acknowledged atomic.Uint64
			failed := make(chan error, 1)
			go func() {
				for revision := uint64(1); ; revision++ {
					if err := s.Apply(t.Context(), benchEffect("ana", revision), revision); err != nil {
						failed <- err
						return
					}
					acknowledged.Store(revision)
				}
			}()
			await(t, "twenty effects", func() bool { return acknowledged.Load() >= 20 })
			l.Kill()
			if err := <-failed; err == nil {
				t.Fatal("an apply on a dead server was acknowledged")
			}
			l.Start()
			await(t, "the loss", func() bool { return lost(s) })
			state, err := s.State(t.Context(), ana)
			if err != nil {
				t.Fatal(err)
			}
			if sync == "always" && state.Revision < acknowledged.Load() {
				t.Errorf("the server has %d effects of %d", state.Revision, acknowledged.Load())
			}
			mend(t, s, store.Remedy{
				Episodes: func(context.Context, store.Store) error { return nil },
				Effects: func(ctx context.Context, through store.Store) error {
					for revision := uint64(1); revision <= acknowledged.Load(); revision++ {
						if err := through.Apply(ctx, benchEffect("ana", revision), revision); err != nil {
							return fmt.Errorf("revision %d: %w", revision, err)
						}
					}
					return nil
				},
			})
			if state, err = s.State(t.Context(), ana); err != nil || state.Revision < acknowledged.Load() {
				t.Errorf("after the mend: %d effects of %d, %v", state.Revision, acknowledged.Load(), err)
			}
		})
	}
}

// TestP1ARangeLacksNothing checks that a read of a complete range of episodes
// returns an error if some may be lost, also from a store that has not detected the
// loss so far and finds the index that another process made.
func TestP1ARangeLacksNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	cfg.Pulse = time.Hour // it meets the loss by itself
	s, other := openNew(t, cfg), openAt(t, cfg)
	tell(t, s, "1", "hello 1")
	tell(t, s, "2", "hello 2")
	read := func(s store.EpisodeReader) (errs [3]error) {
		_, errs[0] = s.EpisodeRange(t.Context(), ana, events.Range{To: 2})
		_, errs[1] = s.EpisodeRange(t.Context(), ana, events.Range{To: 3})
		_, errs[2] = s.EpisodesBefore(t.Context(), spoken("4").Scope, 4, 4)
		return errs
	}
	if errs := read(s); errors.Join(errs[:]...) != nil {
		t.Errorf("while nothing is lost: %v", errs)
	}
	if err := other.client.HSet(t.Context(), s.epochRecordKey(), "lost", "token").Err(); err != nil {
		t.Fatal(err)
	}
	if errs := read(s); errs[0] != nil || !errors.Is(errs[1], store.ErrLost) || !errors.Is(errs[2], store.ErrLost) {
		t.Errorf("while others mend: %v", errs)
	}
	heal, _ := remedy("1", "2")
	episodes := heal.Episodes
	heal.Episodes = func(ctx context.Context, through store.Store) error {
		errs := read(through)
		return errors.Join(episodes(ctx, through), errors.Join(errs[:]...))
	}
	mend(t, other, heal)
	if errs := read(s); errors.Join(errs[:]...) != nil {
		t.Errorf("once it is mended: %v", errs)
	}
}
