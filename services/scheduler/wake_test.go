package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var turn = memory.Rule{ID: "turn", Cadence: memory.Cadence{Every: 1}, Enabled: true}

func only(rules ...memory.Rule) Config { return Config{Rules: rules} }

func session(s scope.Scope, name string) scope.Scope { s.Session = name; return s }

func TestStoredIssuesATick(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	out, err := s.wake(t.Context(), w.say(alice, 3))
	want := []events.TickIssued{{Batch: events.Batch{
		Header: events.Header{Scope: alice}, Rule: "turn", Range: events.Range{To: 3}, Cause: events.CauseEvery, New: true,
	}}}
	if diff := cmp.Diff(want, ticksOf(t, out, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWakeUpsOfOneScopeAreOneLook: STORED keeps them all.
func TestWakeUpsOfOneScopeAreOneLook(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	var in []events.Event[events.EpisodeStored]
	for range 5 {
		in = append(in, w.say(alice, 1))
	}
	out, err := s.stored(t.Context(), in)
	if ticks := ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Range != (events.Range{To: 5}) {
		t.Errorf("ticks %+v", ticks)
	}
	if w.looks != 1 {
		t.Errorf("%d looks at the scope", w.looks)
	}
}

// TestNextTickWaitsForTheWatermark follows one scope through its ticks.
func TestNextTickWaitsForTheWatermark(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	out, err := s.wake(t.Context(), w.say(alice, 1))
	first := ticksOf(t, out, err)[0]
	for range 3 {
		out, err = s.wake(t.Context(), w.say(alice, 1))
		if n := len(ticksOf(t, out, err)); n != 0 {
			t.Fatalf("%d ticks while one is under way", n)
		}
	}
	c, _ := w.apply(first, false)
	out, err = s.committed(t.Context(), c)
	second := ticksOf(t, out, err)
	if len(second) != 1 || second[0].Range != (events.Range{From: 1, To: 4}) {
		t.Fatalf("after the commit: %+v", second)
	}
	c, _ = w.apply(second[0], false)
	out, err = s.committed(t.Context(), c)
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Errorf("%d ticks with nothing pending", n)
	}
}

// TestCommitBeforeTheStore: AUDIT tells of a commit before the store shows it.
func TestCommitBeforeTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	out, err := s.wake(t.Context(), w.say(alice, 1))
	first := ticksOf(t, out, err)[0]
	out, err = s.wake(t.Context(), w.say(alice, 1))
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Fatalf("%d ticks while one is under way", n)
	}
	c, _ := w.apply(first, true)
	out, err = s.committed(t.Context(), c)
	if ticks := ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Range != (events.Range{From: 1, To: 2}) {
		t.Errorf("with more pending: %+v", ticks)
	}
}

// TestWakeUpBetweenCommitAndStore: an episode that is announced then finds the old
// claim, and nothing else would wake the scope before the sweep.
func TestWakeUpBetweenCommitAndStore(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	out, err := s.wake(t.Context(), w.say(alice, 1))
	first := ticksOf(t, out, err)[0]
	lagging, _ := w.apply(first, true)
	out, err = s.committed(t.Context(), lagging)
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Fatalf("%d ticks with nothing pending", n)
	}
	out, err = s.wake(t.Context(), w.say(alice, 1))
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Fatalf("%d ticks before the store has the watermark", n)
	}
	for range 3 {
		w.pass(revisitInterval)
		out, err = s.revisit(t.Context(), w.clock())
		if n := len(ticksOf(t, out, err)); n != 0 {
			t.Fatalf("%d ticks before the store has the watermark", n)
		}
	}
	w.apply(first, false)
	w.pass(revisitInterval)
	out, err = s.revisit(t.Context(), w.clock())
	if ticks := ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Range != (events.Range{From: 1, To: 2}) {
		t.Errorf("once the store has it: %+v", ticks)
	}
	if len(s.lagging.scopes) != 0 {
		t.Error("the scope is still waited for")
	}
}

// TestCommitCostsNoLook checks that the commit of a tick over all episodes does not
// make a process read the scope. The process that met the claim finds an episode that
// arrives during the commit, also if another process receives the commit.
func TestCommitCostsNoLook(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s, other := w.service(t, only(turn)), w.service(t, only(turn))
	out, err := s.wake(t.Context(), w.say(alice, 1))
	first := ticksOf(t, out, err)[0]
	c, _ := w.apply(first, false)
	looks := w.looks
	if out, err := s.committed(t.Context(), c); err != nil || len(out) != 0 || w.looks != looks {
		t.Errorf("%d ticks after %d looks at a scope in which nothing is pending, %v", len(out), w.looks-looks, err)
	}

	out, err = s.wake(t.Context(), w.say(alice, 1))
	second := ticksOf(t, out, err)[0]
	c, _ = w.apply(second, true)
	out, err = other.wake(t.Context(), w.say(alice, 1))
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Fatalf("%d ticks while one is under way", n)
	}
	w.apply(second, false)
	out, err = s.committed(t.Context(), c)
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Errorf("%d ticks of the process that knows of no more", n)
	}
	w.pass(revisitInterval)
	out, err = other.revisit(t.Context(), w.clock())
	if ticks := ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Range != (events.Range{From: 2, To: 3}) {
		t.Errorf("of the process that met the claim: %+v", ticks)
	}
}

// TestP7NoScopeWaitsForADeadProcess: a process that met a claim, and was to look at the
// scope after its commit, dies. An episode before the commit gets its tick with the
// commit. An episode during the commit gets it from the next process, whose first sweep
// finds the scope, also before the commit is applied.
func TestP7NoScopeWaitsForADeadProcess(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	out, err := s.wake(t.Context(), w.say(alice, 1))
	first := ticksOf(t, out, err)[0]
	out, err = w.service(t, only(turn)).wake(t.Context(), w.say(alice, 1))
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Fatalf("%d ticks while one is under way", n)
	}
	c, _ := w.apply(first, false)
	out, err = s.committed(t.Context(), c)
	ticks := ticksOf(t, out, err)
	if len(ticks) != 1 || ticks[0].Range != (events.Range{From: 1, To: 2}) {
		t.Fatalf("of the process that hears of the commit: %+v", ticks)
	}

	c, _ = w.apply(ticks[0], true)
	out, err = w.service(t, only(turn)).wake(t.Context(), w.say(alice, 1))
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Fatalf("%d ticks while one is under way", n)
	}
	started := w.service(t, only(turn))
	if _, err = started.sweep(t.Context(), w.clock()); err != nil {
		t.Fatal(err)
	}
	w.apply(ticks[0], false)
	out, err = s.committed(t.Context(), c)
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Errorf("%d ticks of the process that knows of no more", n)
	}
	w.pass(revisitInterval)
	out, err = started.revisit(t.Context(), w.clock())
	if ticks = ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Range != (events.Range{From: 2, To: 3}) {
		t.Errorf("of the process that started: %+v", ticks)
	}
}

// TestCommitLooksWhereScopesWereRefused: a process that can remember no more scopes looks
// at each after its commit.
func TestCommitLooksWhereScopesWereRefused(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	for n := range maxLagging {
		s.lagging.add(user("p", fmt.Sprint(n)), 1, w.clock())
	}
	out, err := s.wake(t.Context(), w.say(alice, 1))
	first := ticksOf(t, out, err)[0]
	c, _ := w.apply(first, true)
	out, err = s.wake(t.Context(), w.say(alice, 1))
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Fatalf("%d ticks while one is under way", n)
	}
	w.apply(first, false)
	out, err = s.committed(t.Context(), c)
	if ticks := ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Range != (events.Range{From: 1, To: 2}) {
		t.Errorf("after the commit: %+v", ticks)
	}
}

func TestRedeliveryRepeatsTheTick(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	in := w.say(alice, 1)
	out, err := s.wake(t.Context(), in)
	first := ticksOf(t, out, err)[0]
	w.say(alice, 5)
	in.Delivery = 2
	out, err = s.wake(t.Context(), in)
	again := ticksOf(t, out, err)
	if len(again) != 1 || !cmp.Equal(again[0].Identity(), first.Identity()) {
		t.Errorf("redelivered: %+v, want %+v", again, first)
	}
}

func TestTickBounds(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cfg     Config
		said    int
		content int // bytes of each
		want    uint64
	}{
		"200 episodes":         {Config{}, 450, 5, 200},
		"configured":           {Config{TickEpisodes: 7}, 450, 5, 7},
		"tokens":               {Config{TickTokens: 100}, 450, 40, 10},
		"tokens, odd":          {Config{TickTokens: 99}, 450, 40, 9},
		"tokens, many chunks":  {Config{TickTokens: 1000}, 450, 40, 100},
		"one episode too long": {Config{TickTokens: 100}, 3, 4000, 1},
		"a single one":         {Config{TickTokens: 1}, 1, 4000, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			tt.cfg.Rules = []memory.Rule{turn}
			s := w.service(t, tt.cfg)
			in := w.say(alice, tt.said)
			for i := range w.episodes[alice] {
				w.episodes[alice][i].Content = strings.Repeat("x", tt.content)
			}
			out, err := s.wake(t.Context(), in)
			if ticks := ticksOf(t, out, err); len(ticks) != 1 || ticks[0].Range != (events.Range{To: tt.want}) {
				t.Errorf("%+v, want a range to %d", ticks, tt.want)
			}
		})
	}
}

func TestSessionEndMakesTheRuleDue(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(memory.Rule{ID: "sleep", Cadence: memory.Cadence{Every: 100, SessionEnd: true}, Enabled: true}))
	one := session(alice, "one")
	in := w.say(one, 5)
	out, err := s.wake(t.Context(), in)
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Fatalf("%d ticks before the end", n)
	}
	w.end(one, 0)
	w.say(session(alice, "two"), 2)
	out, err = s.wake(t.Context(), in)
	ticks := ticksOf(t, out, err)
	if len(ticks) != 1 || ticks[0].Cause != events.CauseSessionEnd || ticks[0].Range != (events.Range{To: 5}) {
		t.Fatalf("after the end: %+v", ticks)
	}
	want := []events.SessionEnd{{Session: "one", LastOrdinal: 5, Cause: events.EndExplicit, At: noon}}
	if diff := cmp.Diff(want, ticks[0].SessionEnds); diff != "" {
		t.Errorf("ends (-want +got):\n%s", diff)
	}
}

func TestCommitsThatWakeNobody(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, only(turn))
	w.say(alice, 5)
	to := uint64(2)
	base := commit{Header: events.Header{Scope: alice}, Revision: 1, Rule: "turn", Watermark: &to}
	tests := map[string]func(*events.Event[commit]){
		"no watermark":       func(e *events.Event[commit]) { e.Data.Watermark = nil },
		"another rule":       func(e *events.Event[commit]) { e.Data.Rule = "command" },
		"before an erasure":  func(e *events.Event[commit]) { e.Data.Incarnation = 7 },
		"long ago":           func(e *events.Event[commit]) { e.Arrived = noon.Add(-time.Hour) },
		"an unknown rule":    func(e *events.Event[commit]) { e.Data.Rule = "gone" },
		"of an unknown time": func(e *events.Event[commit]) { e.Arrived = time.Time{} },
	}
	for name, change := range tests {
		in := events.Event[commit]{Meta: events.Meta{Arrived: noon}, Data: base}
		change(&in)
		out, err := s.committed(t.Context(), in)
		if n := len(ticksOf(t, out, err)); n != 0 {
			t.Errorf("%s: %d ticks", name, n)
		}
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{Rules: []memory.Rule{turn}, Slots: 3})
	var ticks []events.TickIssued
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		out, err := s.wake(t.Context(), w.say(user("p", name), 1))
		ticks = append(ticks, ticksOf(t, out, err)...)
	}
	if len(ticks) != 3 {
		t.Fatalf("%d ticks under way, want 3", len(ticks))
	}
	out, err := s.wake(t.Context(), w.say(user("other", "a"), 1))
	if n := len(ticksOf(t, out, err)); n != 1 {
		t.Errorf("another project got %d ticks, want 1", n)
	}
	c, _ := w.apply(ticks[0], false)
	out, err = s.committed(t.Context(), c)
	next := ticksOf(t, out, err)
	if len(next) != 1 || next[0].Scope != user("p", "d") {
		t.Errorf("the free slot went to %+v, want the one that waited longest", next)
	}
	w.pass(time.Second)
	out, err = s.revisit(t.Context(), w.clock())
	if n := len(ticksOf(t, out, err)); n != 0 {
		t.Errorf("%d ticks without a free slot", n)
	}
}

func TestStoreErrorsAreRetried(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{})
	in := w.say(session(alice, "one"), 1)
	w.err = errors.New("locked")
	if _, err := s.wake(t.Context(), in); err == nil {
		t.Error("stored hides the store's error")
	}
	if _, err := s.sweep(t.Context(), noon); err == nil {
		t.Error("sweep hides the store's error")
	}
	if _, err := s.idle(t.Context(), noon); err == nil {
		t.Error("idle hides the store's error")
	}
	s.waiting.join(queue{"p", "turn"}, alice)
	if _, err := s.revisit(t.Context(), noon); err == nil || !s.waiting.occupied(queue{"p", "turn"}) {
		t.Error("revisit hides the store's error, or forgets the waiting scope")
	}
	s.lagging.add(alice, 1, noon.Add(-time.Minute))
	if _, err := s.revisit(t.Context(), noon); err == nil || len(s.lagging.due(noon)) != 1 {
		t.Error("revisit hides the store's error, or forgets the scope that lags")
	}
}

// TestAFailingScopeDelaysNoOther: a scope that cannot be read, say because of a
// damaged row, must not stay the head of its queue.
func TestAFailingScopeDelaysNoOther(t *testing.T) {
	t.Parallel()
	a := waitQueue{most: maxQueue}
	q, bob := queue{"p", "turn"}, user("p", "bob")
	a.join(q, alice)
	a.join(q, bob)
	call := func(want scope.Scope, as fate) {
		t.Helper()
		got, ok := a.call(q)
		if !ok || got != want {
			t.Fatalf("called %v, want %v", got, want)
		}
		a.settle(q, got, as)
	}
	call(alice, unserved)
	call(alice, failed)
	call(bob, served)
	call(alice, served)
	if a.occupied(q) {
		t.Error("the queue is not empty")
	}
}

// TestFewReads keeps the price of a wake-up that finds nothing to do.
func TestFewReads(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(t, Config{})
	if _, err := s.wake(t.Context(), w.say(session(alice, "one"), 1)); err != nil {
		t.Fatal(err)
	}
	in := w.say(session(alice, "one"), 1)
	w.reads = 0
	if _, err := s.wake(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if w.reads > 4 {
		t.Errorf("%d reads, want at most 4", w.reads)
	}
}

func BenchmarkStored(b *testing.B) {
	w := newWorld()
	s := w.service(b, Config{})
	in := w.say(session(alice, "one"), 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.wake(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}
