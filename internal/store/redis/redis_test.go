package redis

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
	"palimpsest/internal/store/storetest"
	"palimpsest/internal/testengine/redisdouble"
	"palimpsest/pkg/events"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(redisdouble.Tests{M: m}) }

var testEmbedder = embed.Info{Name: "test", Version: "1", Dimensions: 16}

var namespaces atomic.Int64

// testConfig names a namespace of its own on the server that the environment
// names, or on the double.
func testConfig(t testing.TB) Config {
	t.Helper()
	namespace := fmt.Sprintf("test-%d-%d", os.Getpid(), namespaces.Add(1))
	return Config{URL: redisdouble.URL(t), Namespace: namespace, Embedder: testEmbedder}
}

// countedConfig is testConfig for tests that count commands: those of the pulse, which
// depends on time, are not among them.
func countedConfig(t testing.TB) Config {
	t.Helper()
	cfg := testConfig(t)
	cfg.Pulse = time.Hour
	return cfg
}

func openAt(t testing.TB, cfg Config) *Store {
	t.Helper()
	cfg.hook = &hooks{}
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, is := t.(*testing.T); is { // what benchmarks compare with is of no store
		addHook(s, recordedOnly{t})
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
		return openNew(t, ahead(testConfig(t)))
	}, storetest.Options{
		Later: later,
		PutBack: func(t *testing.T, at time.Time) store.Store {
			t.Helper()
			cfg := testConfig(t)
			cfg.AccessedFrom = func() time.Time { return at }
			return openNew(t, cfg)
		},
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

// answersLost sends each script twice, as the driver does where an answer gets
// lost on its way: the caller sees what the second one did.
type answersLost struct{}

func (answersLost) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (answersLost) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if err := next(ctx, cmd); err != nil || cmd.Name() != "evalsha" && cmd.Name() != "hsetnx" {
			return err
		}
		return next(ctx, cmd)
	}
}

func (answersLost) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// TestAClaimWhoseAnswerGotLostIsWon checks that a repeated claim after a lost reply
// succeeds. Otherwise its tick would not be published before the claim is overdue.
func TestAClaimWhoseAnswerGotLostIsWon(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	claim := func(expect, next store.Claim, won bool) {
		t.Helper()
		stands, mine, err := s.Claim(t.Context(), ana, "turn", expect, next)
		if err != nil || mine != won {
			t.Fatalf("claim of %v: won %v, %v stands, %v", next, mine, stands, err)
		}
	}
	first := store.Claim{Range: events.Range{To: 1}, At: said0}
	claim(store.Claim{}, first, true) // the script is known from here on
	addHook(s, answersLost{})
	second := store.Claim{Range: events.Range{To: 1}, At: said0.Add(time.Minute), Attempt: 1}
	claim(first, second, true)
	claim(first, second, false) // of another caller

	once := func(what string, next store.Claim, won bool) {
		t.Helper()
		stands, mine, err := s.Claim(t.Context(), ana, "sleep", store.Claim{}, next)
		if err != nil || mine != won || stands != first {
			t.Errorf("%s: won %v, %v stands, %v", what, mine, stands, err)
		}
	}
	once("the first claim", first, true)
	if _, err := s.Look(t.Context(), ana); err != nil { // the next write begins with these rows
		t.Fatal(err)
	}
	once("another caller's first claim", second, false)
}

// TestAFirstClaimIsKept checks that a caller that read the scope before another one's first
// claim does not replace it.
func TestAFirstClaimIsKept(t *testing.T) {
	t.Parallel()
	s := openNew(t, testConfig(t))
	tell(t, s, "1", "hello")
	if _, err := s.Look(t.Context(), ana); err != nil {
		t.Fatal(err)
	}
	first := store.Claim{Range: events.Range{To: 1}, At: said0}
	if _, err := s.call(t.Context(), "HSETNX", s.place(ana).state(), claimField+"turn", formatClaim(first)); err != nil {
		t.Fatal(err) // as another process does
	}
	second := store.Claim{Range: events.Range{To: 1}, At: said0.Add(time.Minute)}
	if stands, won, err := s.Claim(t.Context(), ana, "turn", store.Claim{}, second); err != nil || won || stands != first {
		t.Errorf("won %v, %v stands, %v", won, stands, err)
	}
}

// aheadBy is how far the clock of each namespace is ahead.
var aheadBy sync.Map

// ahead gives a store a clock that later moves.
func ahead(cfg Config) Config {
	by, _ := aheadBy.LoadOrStore(cfg.Namespace, new(atomic.Int64))
	cfg.Now = func() time.Time {
		return time.Now().Add(time.Duration(by.(*atomic.Int64).Load())) //nolint:forcetypeassert // stored above
	}
	return cfg
}

// later moves the clock of a store beyond what processes may take to follow.
func later(s store.Store) {
	st := s.(*Store) //nolint:forcetypeassert // opened by ahead
	by, _ := aheadBy.Load(st.cfg.Namespace)
	by.(*atomic.Int64).Add(int64(followLimit * st.cfg.Pulse)) //nolint:forcetypeassert // stored by ahead
}
