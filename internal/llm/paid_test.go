package llm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"palimpsest/internal/llm"
)

// lostPurse cannot keep what is spent.
type lostPurse struct{}

func (lostPurse) Spent(context.Context, string, string) (llm.Spend, error) {
	return llm.Spend{}, nil
}

func (lostPurse) Add(context.Context, string, string, llm.Spend) error { return errLost }

var errLost = errors.New("store away")

// TestAPaidReplyIsKept: where only its cost could not be kept, the call fails, and the
// next one gets the reply for nothing.
func TestAPaidReplyIsKept(t *testing.T) {
	t.Parallel()
	kept, f := &memory{}, &fake{answer: fine}
	m := llm.Cached(llm.Govern(f, llm.Limits{}, lostPurse{}, time.Now), kept, time.Now)
	if _, err := m.Complete(t.Context(), asker); !errors.Is(err, errLost) {
		t.Errorf("first: %v", err)
	}
	if reply, err := m.Complete(t.Context(), asker); err != nil || reply.Text != "yes" || f.calls() != 1 {
		t.Errorf("again: %+v, %v after %d calls", reply, err, f.calls())
	}
	down := &fake{answer: func(int, llm.Request) (llm.Reply, error) {
		return llm.Reply{InputTokens: 10}, llm.ErrUnavailable
	}}
	m = llm.Cached(llm.Govern(down, llm.Limits{}, lostPurse{}, time.Now), kept, time.Now)
	other := asker
	other.User = "x"
	_, err := m.Complete(t.Context(), other)
	if _, paused := llm.Paused(err); !paused || !errors.Is(err, llm.ErrUnavailable) || !errors.Is(err, errLost) {
		t.Errorf("down: %v", err)
	}
}

// TestUnreadable checks that an unreadable reply pauses the model, is requested
// again with a description of the fault, and is final once other requests get
// readable replies.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var questions []string
		f := &fake{answer: func(_ int, req llm.Request) (llm.Reply, error) {
			questions = append(questions, req.User)
			return llm.Reply{Text: req.User, InputTokens: 10}, nil
		}}
		m := llm.Cached(llm.Govern(f, llm.Limits{}, nil, time.Now), &memory{}, time.Now)
		bad, good := asker, asker
		bad.User, good.User = "bad", "good"
		bad.Accept = func(llm.Reply) error { return errors.New("no list") }
		_, err := m.Complete(t.Context(), bad)
		if _, paused := llm.Paused(err); !paused || !errors.Is(err, llm.ErrMalformed) {
			t.Fatalf("first: %v", err)
		}
		pass(2 * time.Second)
		if _, err := m.Complete(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		reply, err := m.Complete(t.Context(), bad)
		if _, paused := llm.Paused(err); paused || !errors.Is(err, llm.ErrMalformed) {
			t.Errorf("second: %v", err)
		}
		if reply.Calls != 2 || reply.InputTokens != 20 || len(questions) != 3 || questions[2] == "bad" {
			t.Errorf("spent %+v on %q", reply, questions)
		}
	})
}

// TestUnreadableAlone: the only request there is gives up after some tries.
func TestUnreadableAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: fine}
		m := llm.Cached(llm.Govern(f, llm.Limits{}, nil, time.Now), &memory{}, time.Now)
		bad := asker
		bad.Accept = func(llm.Reply) error { return errors.New("no list") }
		for {
			_, err := m.Complete(t.Context(), bad)
			after, paused := llm.Paused(err)
			if !paused {
				break
			}
			pass(after)
		}
		if n := f.calls(); n != 8 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestLimitsValidate(t *testing.T) {
	t.Parallel()
	for i, bad := range []llm.Limits{
		{Concurrency: -1}, {PerMinute: -1}, {Backoff: time.Minute, BackoffMost: time.Second}, {DailyDollars: 1}, {Patience: time.Hour},
	} {
		if bad.Validate() == nil {
			t.Errorf("%d: %+v is taken", i, bad)
		}
	}
	if err := (llm.Limits{}).Validate(); err != nil {
		t.Error(err)
	}
}

func newStatus(t *testing.T, status int, after string) error {
	t.Helper()
	_, err := clientFor(t, status, after).Get("/")
	if err == nil {
		t.Fatal("no error")
	}
	return fmt.Errorf("call: %w", err)
}

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }
