package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/internal/audit/journal"
	"palimpsest/internal/broker"
	"palimpsest/internal/decide"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/internal/embed"
	"palimpsest/internal/extract"
	"palimpsest/internal/extract/rulepack"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/decider"
	"palimpsest/services/extractor"
)

// TestP7FaultClockJumps sets the clock back and forth between messages: the facts
// follow the order of the messages.
func TestP7FaultClockJumps(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	h, stop := openAltered(t, loopback(t.TempDir()), func(h *process) {
		h.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		// If this clock and the broker's disagree, a commit may look too old to wake
		// the scheduler. The sweep finds the work that it leaves.
		h.cfg.Scheduler.Sweep = 100 * time.Millisecond
		// A message in flight at a jump looks as old as the jump is long.
		h.cfg.Pipeline.BacklogAge = 48 * time.Hour
	}, func(*process) {})
	defer stop()
	jumps := []time.Duration{0, -time.Hour, 24 * time.Hour, -25 * time.Hour, time.Minute, 0}
	for n, jump := range jumps {
		ahead.Store(int64(jump))
		say(t, h, 1+2*n, 2)
	}
	last := len(jumps) * 2
	for _, user := range []string{"nora", "bob"} {
		if total := consolidated(t, h, user, uint64(last)); total.Skipped != 0 {
			t.Errorf("%s: %+v", user, total)
		}
		if got := lives(t, h, user); len(got) != 1 || !strings.EqualFold(got[0], fmt.Sprintf("Town%d", last)) {
			t.Errorf("%s lives in %v", user, got)
		}
		fact := scope.Scope{Project: "default", User: user}
		episodes, err := h.store.EpisodeRange(t.Context(), fact, events.Range{From: 0, To: uint64(last)})
		if err != nil || len(episodes) != last {
			t.Fatalf("%d episodes, %v", len(episodes), err)
		}
		for i, e := range episodes {
			if want := fmt.Sprintf("I live in Town%d.", i+1); e.Content != want || e.Ordinal != uint64(i+1) {
				t.Errorf("%s: %d is %q", user, e.Ordinal, e.Content)
			}
		}
		revision, seen := uint64(0), map[string]bool{}
		for e, err := range journal.New(h.streams.JetStream()).ReadScope(t.Context(), fact, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if revision++; e.Data.Revision != revision || seen[e.ID] {
				t.Errorf("%s: revision %d after %d, id %s", user, e.Data.Revision, revision-1, e.ID)
			}
			seen[e.ID] = true
		}
	}
	deadLetters(t, h, 0)
}

// faultyEmbedder fails while it is down.
type faultyEmbedder struct {
	embed.Embedder
	down atomic.Bool
}

func (e *faultyEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if e.down.Load() {
		return nil, errors.New("connection refused")
	}
	return e.Embedder.Embed(ctx, texts)
}

// TestP7FaultEmbedderDown: facts are stored and found by text, the answer warns
// about the missing vectors, and the vectors follow.
func TestP7FaultEmbedderDown(t *testing.T) {
	t.Parallel()
	e := &faultyEmbedder{}
	e.down.Store(true)
	h, stop := openAltered(t, loopback(t.TempDir()), func(h *process) { e.Embedder, h.embedder = h.embedder, e }, func(*process) {})
	defer stop()
	tell(t, h, "nora", 1, "I live in Oslo.")
	consolidated(t, h, "nora", 1)
	nora := "nora"
	search := func() api.Found {
		t.Helper()
		found, err := caller(t, h).Search(t.Context(), api.Search{Selector: api.Selector{User: &nora}, Text: "Oslo"})
		if err != nil {
			t.Fatal(err)
		}
		if len(found.Results) == 0 {
			t.Errorf("nothing is found: %+v", found)
		}
		return found
	}
	if found := search(); !slices.Equal(found.Degraded, []string{"vector"}) {
		t.Errorf("degraded: %v", found.Degraded)
	}
	pending := func() uint64 {
		stats, err := h.store.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return stats.VectorsPending
	}
	if n := pending(); n != 2 { // the episode and the fact
		t.Errorf("%d vectors are pending", n)
	}
	e.down.Store(false)
	eventually(t, "the vectors follow", func() error {
		if n := pending(); n > 0 {
			return fmt.Errorf("%d are pending", n)
		}
		return nil
	})
	if found := search(); len(found.Degraded) > 0 {
		t.Errorf("degraded: %v", found.Degraded)
	}
}

// picky refuses what says "poison" until it is mended.
type picky struct {
	extract.Extractor
	mended atomic.Bool
}

func (p *picky) Extract(ctx context.Context, episodes []memory.Episode, in extract.Context) ([]events.Candidate, error) {
	for _, e := range episodes {
		if strings.Contains(e.Content, "poison") && !p.mended.Load() {
			return nil, pipeline.Rejectf(events.CodeInvalidField, "content", "cannot be digested")
		}
	}
	return p.Extractor.Extract(ctx, episodes, in)
}

func (p *picky) install(t *testing.T) func(h *process) {
	return func(h *process) {
		packs, err := rulepack.New()
		if err != nil {
			t.Fatal(err)
		}
		p.Extractor = packs
		s, err := extractor.New(h.cfg.Extractor, extractor.Deps{Episodes: h.store, Extractors: map[string]extract.Extractor{"rulepack": p}})
		if err != nil {
			t.Fatal(err)
		}
		h.replace(s)
	}
}

// replace puts a service in the place of the one of its name.
func (h *process) replace(s pipeline.Service) {
	for i, old := range h.services {
		if old.Name() == s.Name() {
			h.services[i] = s
		}
	}
}

// TestP8FaultPoisonedRange: a range that fails is skipped, the waiting caller gets
// a warning, and no other range stalls. Once the cause is fixed, a retry stores its
// facts, and later facts stay as they are.
func TestP8FaultPoisonedRange(t *testing.T) {
	t.Parallel()
	p := &picky{}
	h, stop := openAltered(t, loopback(t.TempDir()), func(*process) {}, p.install(t))
	defer stop()
	tell(t, h, "bob", 1, "I live in Bonn.")
	said, err := caller(t, h).Record(t.Context(), api.Record{
		Scope: api.Scope{User: "nora", Session: "s1"}, Wait: true,
		Messages: api.Messages{{Content: "I live in Oslo. My cat ate poison.", Timestamp: []byte(`"2026-03-01T11:00:00Z"`)}},
	}, "")
	if err != nil || said.Status != "done" || len(said.Warnings) != 1 || !strings.Contains(said.Warnings[0], "dead letters") {
		t.Errorf("the waiter is told %+v, %v", said, err)
	}
	tell(t, h, "nora", 2, "I live in Rome.")
	if total := consolidated(t, h, "nora", 2); total.Skipped != 1 || total.Consolidated != 1 {
		t.Errorf("ledger %+v", total)
	}
	consolidated(t, h, "bob", 1)
	if got := lives(t, h, "bob"); !slices.Equal(got, []string{"Bonn"}) {
		t.Errorf("bob lives in %v", got)
	}
	l := deadLetters(t, h, 1)[0]
	if l.Service != "extractor" || l.Code != events.CodeInvalidField || l.Kind != string(events.KindTickIssued) || l.Attempts != 1 {
		t.Errorf("letter %+v", l)
	}

	// In vain, it comes back; nothing is counted twice.
	retry := func(l api.DeadLetter) {
		t.Helper()
		if _, err := caller(t, h).RetryDeadLetter(t.Context(), l.Sequence); err != nil {
			t.Fatal(err)
		}
	}
	retry(l)
	var again api.DeadLetter
	eventually(t, "another letter", func() error {
		if again = deadLetters(t, h, 1)[0]; again.Sequence == l.Sequence {
			return errors.New("the same")
		}
		return nil
	})
	if total := consolidated(t, h, "nora", 2); total.Skipped != 1 {
		t.Errorf("ledger %+v", total)
	}
	p.mended.Store(true)
	retry(again)
	eventually(t, "the range is made good", func() error {
		if total := consolidated(t, h, "nora", 2); total.Skipped != 0 || total.Consolidated != 2 {
			return fmt.Errorf("ledger %+v", total)
		}
		return nil
	})
	if got := lives(t, h, "nora"); !slices.Equal(got, []string{"Rome"}) {
		t.Errorf("nora lives in %v: what was said later must stand", got)
	}
	deadLetters(t, h, 0)
}

// refusing refuses to read the state of a scope, some times.
type refusing struct {
	store.StateReader
	left atomic.Int32
}

func (r *refusing) State(ctx context.Context, fact scope.Scope) (memory.State, error) {
	if fact.User == "nora" && r.left.Add(-1) >= 0 {
		return memory.State{}, pipeline.Rejectf(events.CodeInvalidField, "scope", "cannot be decided")
	}
	return r.StateReader.State(ctx, fact)
}

// TestP8FaultStandInIsBuriedToo: a stand-in has none itself. The range is issued
// again when it is overdue, and nothing is lost.
func TestP8FaultStandInIsBuriedToo(t *testing.T) {
	t.Parallel()
	state := &refusing{}
	h, stop := openAltered(t, loopback(t.TempDir()), func(h *process) {
		h.cfg.Scheduler.Overdue, h.cfg.Scheduler.Sweep = 300*time.Millisecond, 50*time.Millisecond
	}, func(h *process) {
		state.StateReader = h.store
		s, err := decider.New(h.cfg.Decider, decider.Deps{
			State: state, Whole: h.store, Facts: h.store, Search: h.store, Deciders: map[string]decide.Decider{"rules": deterministic.New()},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.replace(s)
	})
	defer stop()
	tell(t, h, "nora", 1, "I like jazz.") // nothing is read of a new scope
	consolidated(t, h, "nora", 1)
	state.left.Store(2)
	tell(t, h, "nora", 2, "I live in Oslo.")
	if total := consolidated(t, h, "nora", 2); total.Skipped != 0 {
		t.Errorf("ledger %+v", total)
	}
	if got := lives(t, h, "nora"); !slices.Equal(got, []string{"Oslo"}) {
		t.Errorf("nora lives in %v", got)
	}
	// The range is consolidated: retried, its letters come to nothing.
	for _, l := range deadLetters(t, h, 2) {
		if _, err := caller(t, h).RetryDeadLetter(t.Context(), l.Sequence); err != nil {
			t.Fatal(err)
		}
	}
	tell(t, h, "nora", 3, "I like tea.")
	if total := consolidated(t, h, "nora", 3); total.Candidates != 3 {
		t.Errorf("ledger %+v: something was counted twice", total)
	}
}

// stubborn refuses every candidate.
type stubborn struct{ decide.Decider }

func (stubborn) Decide(_ context.Context, candidates []events.Candidate, _ decide.Known) (decide.Decision, error) {
	return decide.Decision{}, &decide.InvalidCandidateError{CandidateID: candidates[0].ID, Field: "object", Reason: "is unheard of"}
}

// TestP8FaultRefusedCommand: the caller of a command that cannot be done gets the
// reason at once, also on a repetition, and not "accepted" when the wait ends.
func TestP8FaultRefusedCommand(t *testing.T) {
	t.Parallel()
	h, stop := openAltered(t, loopback(t.TempDir()), func(h *process) { h.cfg.Query.Wait = 25 * time.Second }, func(h *process) {
		s, err := decider.New(h.cfg.Decider, decider.Deps{
			State: h.store, Whole: h.store, Facts: h.store, Search: h.store, Deciders: map[string]decide.Decider{"rules": stubborn{deterministic.New()}},
		})
		if err != nil {
			t.Fatal(err)
		}
		h.replace(s)
	})
	defer stop()
	for range 2 {
		began := time.Now()
		_, err := caller(t, h).Remember(t.Context(), api.Remember{Scope: api.Scope{User: "nora"}, Text: "Nora keeps bees."}, "k")
		var p *api.Problem
		if !errors.As(err, &p) || p.Status != 400 || p.Code != api.CodeInvalidField || !strings.Contains(p.Detail, "object") {
			t.Errorf("answer %+v", err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
	}
	deadLetters(t, h, 1)
}

// TestP7FaultBrokerRestarts restarts the broker in place under load: publishers get
// errors or their acknowledgement, and soon after the last restart the acknowledged
// episodes are consolidated. With E2E_FULL there are 30 restarts.
func TestP7FaultBrokerRestarts(t *testing.T) {
	t.Parallel()
	const n, known = 60, 15 * time.Second
	restarts := 4
	if os.Getenv("E2E_FULL") != "" {
		restarts = 30
	}
	h, stop := openAltered(t, loopback(t.TempDir()), func(h *process) {
		h.cfg.Decider.Churn.Limit = n // nora moves often
	}, func(*process) {})
	defer stop()
	tell(t, h, "bob", 1, "I live in Bonn.")
	consolidated(t, h, "bob", 1) // everything runs
	acknowledged := make(chan int, n)
	go func() {
		defer close(acknowledged)
		for i := range n {
			eventually(t, "an episode is taken", func() error {
				_, err := h.runtime.Publisher().Publish(t.Context(), events.Meta{ID: fmt.Sprint(i), Source: "test"}, events.EpisodeRecorded{
					Scope: scope.Scope{Project: "default", User: "nora", Session: "s1"}, Role: events.RoleUser, Content: fmt.Sprintf("I live in Town%d.", i),
					Timestamp: events.Timestamp{Time: time.Date(2026, 3, 1, 12, i, 0, 0, time.UTC)},
				})
				return err
			})
			acknowledged <- i
		}
	}()
	var back time.Time
	for i := range acknowledged {
		if i%(n/restarts) == 0 {
			if err := h.streams.(*broker.Embedded).Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			back = time.Now()
		}
	}
	total := consolidated(t, h, "nora", n)
	took := time.Since(back).Round(10 * time.Millisecond)
	t.Logf("%d episodes are known %v after the last of %d restarts", n, took, restarts)
	if total.Skipped != 0 || took > known {
		t.Errorf("known after %v, want %v; ledger %+v", took, known, total)
	}
	if got := lives(t, h, "nora"); !slices.Equal(got, []string{"Town59"}) {
		t.Errorf("nora lives in %v", got)
	}
	deadLetters(t, h, 0)
}
