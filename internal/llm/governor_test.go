package llm_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/llm"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var asker = llm.Request{Scope: scope.Scope{Project: "p", User: "u"}, System: "s", User: "u"}

// fake answers by script: n counts its calls from 1.
type fake struct {
	mu     sync.Mutex
	n      int
	answer func(n int, req llm.Request) (llm.Reply, error)
}

func (*fake) Info() llm.Info { return llm.Info{Provider: "fake", Model: "m-1"} }

func (f *fake) Complete(_ context.Context, req llm.Request) (llm.Reply, error) {
	f.mu.Lock()
	f.n++
	n := f.n
	f.mu.Unlock()
	return f.answer(n, req)
}

func (f *fake) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// memory is a store of replies.
type memory struct {
	mu   sync.Mutex
	rows map[string][]byte
}

func (m *memory) Cached(_ context.Context, s scope.Scope, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows[s.String()+key], nil
}

func (m *memory) PutCached(_ context.Context, s scope.Scope, key string, value []byte, _ time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = map[string][]byte{}
	}
	m.rows[s.String()+key] = value
	return nil
}

func fine(int, llm.Request) (llm.Reply, error) {
	return llm.Reply{Text: "yes", InputTokens: 100, OutputTokens: 10}, nil
}

func down(int, llm.Request) (llm.Reply, error) { return llm.Reply{}, llm.ErrUnavailable }

// TestOutageIsProbed: during an outage one call is made after each pause, pauses
// double up to their bound, and the first reply ends it.
func TestOutageIsProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: down}
		g := llm.Govern(f, llm.Limits{Backoff: time.Second, BackoffMost: 16 * time.Second}, nil, time.Now)
		began := time.Now()
		for time.Since(began) < time.Minute {
			_, err := g.Complete(t.Context(), asker)
			after, ok := llm.Paused(err)
			if !ok || !errors.Is(err, llm.ErrUnavailable) || after <= 0 {
				t.Fatalf("error %v", err)
			}
			pass(100 * time.Millisecond)
		}
		if n := f.calls(); n < 5 || n > 8 { // after 0, 1, 3, 7, 15, 31, 47 s and more by jitter
			t.Errorf("%d calls in a minute", n)
		}
		if s := g.State(); !s.Paused || s.Until.Before(time.Now()) || s.Reason == "" {
			t.Errorf("state %+v", s)
		}
		f.answer = fine
		pass(20 * time.Second)
		if _, err := g.Complete(t.Context(), asker); err != nil || g.State().Paused {
			t.Errorf("after the outage: %v, %+v", err, g.State())
		}
	})
}

// TestOneProbe: after a pause one call of many is made.
func TestOneProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		f := &fake{answer: func(n int, _ llm.Request) (llm.Reply, error) {
			if n > 1 {
				<-hold
			}
			return llm.Reply{}, llm.ErrUnavailable
		}}
		g := llm.Govern(f, llm.Limits{Concurrency: 20}, nil, time.Now)
		_, _ = g.Complete(t.Context(), asker)
		pass(2 * time.Second)
		var done sync.WaitGroup
		for range 10 {
			done.Go(func() { _, _ = g.Complete(t.Context(), asker) })
		}
		synctest.Wait()
		if n := f.calls(); n != 2 {
			t.Errorf("%d calls, want one more than before", n)
		}
		close(hold)
		done.Wait()
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	s := newStatus(t, 429, "30")
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(int, llm.Request) (llm.Reply, error) { return llm.Reply{}, s }}
		g := llm.Govern(f, llm.Limits{}, nil, time.Now)
		for range 29 {
			_, err := g.Complete(t.Context(), asker)
			if !errors.Is(err, llm.ErrRateLimited) {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if n := f.calls(); n != 1 {
			t.Errorf("%d calls within Retry-After, want 1", n)
		}
	})
}

func TestConcurrencyAndPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		f := &fake{answer: func(int, llm.Request) (llm.Reply, error) { <-hold; return llm.Reply{Text: "yes"}, nil }}
		g := llm.Govern(f, llm.Limits{Concurrency: 2, Patience: time.Second}, nil, time.Now)
		var busy int
		var mu sync.Mutex
		var done sync.WaitGroup
		for range 5 {
			done.Go(func() {
				if _, err := g.Complete(t.Context(), asker); errors.Is(err, llm.ErrBusy) {
					mu.Lock()
					busy++
					mu.Unlock()
				}
			})
		}
		pass(2 * time.Second)
		close(hold)
		done.Wait()
		if f.calls() != 2 || busy != 3 {
			t.Errorf("%d calls, %d turned away", f.calls(), busy)
		}
	})
}

func TestRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: fine}
		g := llm.Govern(f, llm.Limits{PerMinute: 60, Patience: 5 * time.Second}, nil, time.Now)
		began := time.Now()
		for range 4 {
			if _, err := g.Complete(t.Context(), asker); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("four calls took %v", took)
		}
	})
}

// TestDailyLimits are per project, outlive the process, and end with the day.
func TestDailyLimits(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]llm.Limits{
		"tokens":  {DailyTokens: 220},
		"dollars": {DailyDollars: 0.0003, InputPrice: 1, OutputPrice: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				kept := &memory{}
				f := &fake{answer: fine}
				for i := range 2 { // the process is started again
					g := llm.Govern(f, limits, llm.NewPurse(kept), time.Now)
					if _, err := g.Complete(t.Context(), asker); err != nil {
						t.Fatalf("call %d: %v", i+1, err)
					}
				}
				g := llm.Govern(f, limits, llm.NewPurse(kept), time.Now)
				_, err := g.Complete(t.Context(), asker)
				if _, ok := llm.Paused(err); !ok || !errors.Is(err, llm.ErrDailyLimit) {
					t.Errorf("above the limit: %v", err)
				}
				other := asker
				other.Scope.Project = "q"
				if _, err := g.Complete(t.Context(), other); err != nil {
					t.Errorf("another project: %v", err)
				}
				pass(24 * time.Hour)
				if _, err := g.Complete(t.Context(), asker); err != nil {
					t.Errorf("the next day: %v", err)
				}
			})
		})
	}
}

// TestCached: a request that was answered costs no second call, in whatever process.
func TestCached(t *testing.T) {
	t.Parallel()
	kept, f := &memory{}, &fake{answer: fine}
	ask := func(req llm.Request) llm.Reply {
		t.Helper()
		m := llm.Cached(llm.Govern(f, llm.Limits{}, nil, time.Now), kept, time.Now)
		reply, err := m.Complete(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	first, again := ask(asker), ask(asker)
	if first != again || first.Calls != 1 || f.calls() != 1 {
		t.Errorf("replies %+v and %+v after %d calls", first, again, f.calls())
	}
	other := asker
	other.User = "x"
	elsewhere := asker
	elsewhere.Scope.User = "v"
	ask(other)
	ask(elsewhere)
	if f.calls() != 3 {
		t.Errorf("%d calls, want 3: another question, another scope", f.calls())
	}
	same := asker
	other.Identity, same.Identity = "same", "same"
	ask(other)
	ask(same)
	if f.calls() != 4 {
		t.Errorf("%d calls, want 4: one identity is one question", f.calls())
	}
}

// TestAPanicLeaves: a call that panics gives its place to the next one.
func TestAPanicLeaves(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(n int, _ llm.Request) (llm.Reply, error) {
		if n == 1 {
			return llm.Reply{}, llm.ErrUnavailable
		}
		return fine(n, asker)
	}}
	now := time.Now()
	g := llm.Govern(f, llm.Limits{Concurrency: 1}, nil, func() time.Time { return now })
	_, _ = g.Complete(t.Context(), asker) // begins a pause, after which one call tries
	now = now.Add(time.Minute)
	for range 2 {
		func() {
			defer func() { _ = recover() }()
			bad := asker
			bad.Accept = func(llm.Reply) error { panic("a bug") }
			_, _ = g.Complete(t.Context(), bad)
		}()
		now = now.Add(time.Minute)
	}
	if _, err := g.Complete(t.Context(), asker); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}
