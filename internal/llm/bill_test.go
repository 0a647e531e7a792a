package llm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"palimpsest/internal/llm"
	"palimpsest/pkg/events"
)

// TestABillHasEachRequestOnce: a repeated request, answered from the cache, is on the
// bill of who repeats it with all that it cost, and unreadable replies cost too.
func TestABillHasEachRequestOnce(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(call int, req llm.Request) (llm.Reply, error) {
		return llm.Reply{Text: req.User, InputTokens: 1000, OutputTokens: 100}, nil
	}}
	limits := llm.Limits{InputPrice: 1, OutputPrice: 10, Backoff: time.Minute, BackoffMost: time.Minute}
	m := llm.Cached(llm.Govern(f, limits, nil, time.Now), &memory{}, time.Now)
	good, bad := asker, asker
	good.User, bad.User = "good", "bad"
	bad.Accept = func(llm.Reply) error { return errors.New("no list") }

	ctx, first := llm.Billed(t.Context())
	for range 2 {
		if _, err := m.Complete(ctx, good); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.Complete(ctx, bad); !errors.Is(err, llm.ErrMalformed) {
		t.Fatal(err)
	}
	name := m.Info().Model
	one := events.Spent{Model: name, Calls: 1, InputTokens: 1000, OutputTokens: 100, Dollars: 0.002}
	noIDs := cmpopts.IgnoreFields(events.Spent{}, "Request")
	if diff := cmp.Diff([]events.Spent{one, one}, first.Spent(), noIDs); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	// It pauses now: requests that are refused for that cost nothing and are no tries.
	paused := asker
	paused.User = "paused"
	refused, none := llm.Billed(t.Context())
	for range 10 {
		if _, err := m.Complete(refused, paused); !errors.Is(err, llm.ErrMalformed) {
			t.Fatal(err)
		}
	}
	if spent := none.Spent(); len(spent) > 0 || f.calls() != 2 {
		t.Errorf("refused requests cost %+v after %d calls", spent, f.calls())
	}
	again, second := llm.Billed(t.Context())
	if _, err := m.Complete(again, good); err != nil || f.calls() != 2 {
		t.Fatalf("%v after %d calls", err, f.calls())
	}
	if diff := cmp.Diff([]events.Spent{one}, second.Spent(), noIDs); diff != "" {
		t.Errorf("handled again (-want +got):\n%s", diff)
	}
	// A batch that is decided again charges what it was charged, once.
	both := events.Charge(first.Spent(), second.Spent())
	want := []events.Spent{{Model: name, Calls: 2, InputTokens: 2000, OutputTokens: 200, Dollars: 0.004}}
	if diff := cmp.Diff(want, events.SpentByModel(both)); diff != "" {
		t.Errorf("in all (-want +got):\n%s", diff)
	}
}
