package app

import (
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// eventually polls until check returns nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	limit := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-limit:
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// receive waits for a value. If none comes it prints what all goroutines do.
func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(2 * time.Minute):
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		t.Fatalf("waited in vain: %s\n%s", what, stacks.String())
		panic("unreachable")
	}
}

// healed waits until the store is up to the streams.
func healed(t *testing.T, h *process) {
	t.Helper()
	eventually(t, "healed", func() error { _, err := h.caughtUp.Ready(t.Context()); return err })
}

func caller(t *testing.T, h *process) *client.Client {
	t.Helper()
	c, err := client.New(h.http.URL())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tell publishes one episode of a user's.
func tell(t *testing.T, h *process, user string, n int, content string) {
	t.Helper()
	_, err := h.runtime.Publisher().Publish(t.Context(), events.Meta{ID: fmt.Sprintf("%s-%d", user, n), Source: "test"}, events.EpisodeRecorded{
		Scope: scope.Scope{Project: "default", User: user, Session: "s1"}, Role: events.RoleUser, Content: content,
		Timestamp: events.Timestamp{Time: time.Date(2026, 3, 1, 12, n, 0, 0, time.UTC)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// consolidated waits until the rule that runs on every episode has reached
// ordinal in a user's scope, and the ledger balances.
func consolidated(t *testing.T, h *process, user string, ordinal uint64) api.Account {
	t.Helper()
	var total api.Account
	eventually(t, fmt.Sprintf("%s is consolidated up to %d", user, ordinal), func() error {
		l, err := caller(t, h).Ledger(t.Context(), scope.Selector{Project: "default", User: &user}, false)
		if err != nil {
			return err
		}
		for _, total = range l.Totals {
			if total.Rule == memory.RuleTurn && l.Balanced && total.Accepted == ordinal && total.Pending == 0 {
				return nil
			}
		}
		return fmt.Errorf("ledger %+v", l)
	})
	return total
}

// lives is where a user is known to live, all places that are valid.
func lives(t *testing.T, h *process, user string) (places []string) {
	t.Helper()
	page, err := caller(t, h).Facts(t.Context(), scope.Selector{Project: "default", User: &user}, client.ListFacts{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range page.Facts {
		if f.Predicate == "lives_in" {
			places = append(places, f.Object)
		}
	}
	slices.Sort(places)
	return places
}

func deadLetters(t *testing.T, h *process, n int) []api.DeadLetter {
	t.Helper()
	var page api.DeadLetterPage
	eventually(t, fmt.Sprintf("%d dead letters", n), func() (err error) {
		if page, err = caller(t, h).DeadLetters(t.Context(), client.ListLetters{}); err == nil && len(page.Letters) != n {
			err = fmt.Errorf("letters %+v", page.Letters)
		}
		return err
	})
	return page.Letters
}
