package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"palimpsest/internal/decide"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/internal/memory"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/services/decider"
)

// slow is a decider that answers when it is let go.
type slow struct {
	decide.Decider
	asked atomic.Int32
	began chan struct{}
	goOn  chan struct{}
}

func (s *slow) Decide(ctx context.Context, candidates []events.Candidate, known decide.Known) (decide.Decision, error) {
	decision, err := s.Decider.Decide(ctx, candidates, known)
	if s.asked.Add(1) == 1 {
		close(s.began)
	}
	select {
	case <-s.goOn:
		return decision, err
	case <-ctx.Done():
		return decision, ctx.Err()
	}
}

// TestSlowDecisionOutlivesIdleChatter: later episodes, statements and effects of
// the same scope send the batch of a slow decider back only if they concern the
// same facts.
func TestSlowDecisionOutlivesIdleChatter(t *testing.T) {
	t.Parallel()
	const first, chatter = 3, 40
	rules := []memory.Rule{
		{ID: memory.RuleTurn, Cadence: memory.Cadence{Every: 1}, Then: []events.FactKind{events.FactSummary}, Enabled: true},
		{ID: "slow", Class: events.ClassModel, Cadence: memory.Cadence{Every: first}, Decider: "slow", Enabled: true},
	}
	late := &slow{Decider: deterministic.New(), began: make(chan struct{}), goOn: make(chan struct{})}
	h, stop := openAltered(t, loopback(t.TempDir()), func(h *process) {
		h.cfg.Scheduler.Rules, h.cfg.Extractor.Rules = rules, rules
	}, func(h *process) {
		s, err := decider.New(decider.Config{Rules: rules}, decider.Deps{
			State: h.store, Whole: h.store, Facts: h.store, Search: h.store,
			Deciders: map[string]decide.Decider{"rules": deterministic.New(), "slow": late},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.replace(s)
	})
	defer stop()
	for n, said := range []string{"I live in Oslo.", "I like tea.", "My name is Nora."} {
		tell(t, h, "nora", n+1, said)
	}
	receive(t, "the question to the slow decider", late.began)
	for n := range chatter {
		tell(t, h, "nora", first+n+1, "hello")
		if n%8 == 0 {
			if _, err := caller(t, h).Remember(t.Context(), api.Remember{Scope: api.Scope{User: "nora"}, Text: fmt.Sprintf("The bees of hive %d swarmed.", n)}, fmt.Sprint("k", n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	consolidated(t, h, "nora", first+chatter)
	if got := lives(t, h, "nora"); len(got) != 0 {
		t.Fatalf("nora lives in %v before it is decided", got)
	}
	close(late.goOn)
	eventually(t, "the slow decision is committed", func() error {
		if got := lives(t, h, "nora"); len(got) != 1 || got[0] != "Oslo" {
			return fmt.Errorf("nora lives in %v", got)
		}
		return nil
	})
	if n := late.asked.Load(); n != 1 {
		t.Errorf("the range was decided %d times", n)
	}
	deadLetters(t, h, 0)
}
