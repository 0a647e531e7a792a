package decidetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// mill is a memory whose facts change within hours: three times an hour at most.
type mill struct {
	*Memory
	t       fataler
	decider decide.Decider
	breaker decide.Breaker
	now     time.Time
	said    int
	batches int
	tally   events.Tally
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newMill(t fataler, d decide.Decider) *mill {
	return &mill{Memory: NewMemory(owner), t: t, decider: d, breaker: decide.Breaker{Limit: 3, Window: time.Hour}, now: start}
}

func (m *mill) pass(d time.Duration) { m.now = m.now.Add(d) }

// says is a candidate of now.
func (m *mill) says(predicate, object string, more ...func(*events.Candidate)) events.Candidate {
	m.said++
	episode := fmt.Sprintf("e%d", m.said)
	c := said(0, episode, "user", predicate, object, "The user: "+predicate+" "+object+".", more...)
	c.Ordinal, c.EventTime = uint64(m.said), m.now
	return c
}

func (m *mill) lives(place string) events.Candidate { return m.says("lives_in", place, one) }

// hear decides on a batch and commits it.
func (m *mill) hear(candidates ...events.Candidate) events.Deltas {
	m.t.Helper()
	return m.commit(events.DeltasDecided{Candidates: candidates}, m.breaker)
}

// release decides on a held candidate again.
func (m *mill) release(h events.Hold, op events.CommandOp, b decide.Breaker) events.Deltas {
	m.t.Helper()
	ref := &events.CommandRef{RequestID: "r", Op: op}
	return m.commit(events.DeltasDecided{Command: ref, Candidates: []events.Candidate{h.Candidate}}, b)
}

// sweep releases what is due, as the scheduler would.
func (m *mill) sweep() {
	m.t.Helper()
	for _, h := range m.Held() {
		if !h.Due.After(m.now) {
			m.release(h, events.OpReleaseDue, m.breaker)
		}
	}
}

func (m *mill) commit(b events.DeltasDecided, breaker decide.Breaker) events.Deltas {
	m.t.Helper()
	m.batches++
	d, err := m.decider.Decide(context.Background(), b.Candidates, decide.Known{
		Scope: owner, At: m.now, Cause: fmt.Sprintf("m%d", m.batches), Lookup: m.Memory, Breaker: breaker, Held: m.Held(),
	})
	if err != nil {
		m.t.Fatalf("Decide: %v", err)
	}
	b.Batch = events.Batch{
		Header: events.Header{Scope: owner}, Rule: memory.RuleTurn, Cause: events.CauseEvery,
		Range: events.Range{From: m.Revision(), To: m.Revision() + 1},
	}
	b.Deltas, b.Mentions = d.Deltas, d.Mentions
	effects, err := m.Memory.Commit(b, m.now)
	if err != nil {
		m.t.Fatalf("Commit: %v", err)
	}
	for _, e := range effects {
		m.count(e.Tally)
	}
	return d.Deltas
}

// count keeps the account that a store keeps of the tallies.
func (m *mill) count(t events.Tally) {
	m.t.Helper()
	m.tally.Candidates += t.Candidates
	m.tally.Decided += t.Decided
	m.tally.Held += t.Held
	m.tally.Dropped += t.Dropped
	for _, s := range t.Settled {
		m.tally.Held -= s.Decided + s.Dropped
		m.tally.Decided += s.Decided
		m.tally.Dropped += s.Dropped
	}
	if sum := m.tally.Decided + m.tally.Held + m.tally.Dropped; sum != m.tally.Candidates || m.tally.Held != len(m.Held()) {
		m.t.Fatalf("%+v does not balance with %d held", m.tally, len(m.Held()))
	}
}

// holds returns the objects of the held candidates.
func (m *mill) holds() (objects []string) {
	for _, h := range m.Held() {
		objects = append(objects, h.Candidate.Object)
	}
	return objects
}

// valid returns the objects of the facts that are valid now.
func (m *mill) valid() (objects []string) {
	for _, f := range m.ValidAt(m.now) {
		objects = append(objects, f.Object)
	}
	return objects
}

// expect checks the valid and the held objects.
func (m *mill) expect(known, held string) {
	m.t.Helper()
	if got := fmt.Sprint(m.valid(), m.holds()); got != fmt.Sprintf("[%s] [%s]", known, held) {
		m.t.Fatalf("known and held: %s, want [%s] [%s]", got, known, held)
	}
}

func runChurn(t *testing.T, open func() decide.Decider) {
	for _, r := range slices.Concat(trips(), overtakes()) {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t, newMill(t, open()))
		})
	}
	t.Run("law: the last word wins, in bounds", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(r *rapid.T) { lastWordWins(r, newMill(r, open())) })
	})
}

// lastWordWins checks that the last of contradicting statements wins at any pace,
// cut into any batches.
func lastWordWins(r *rapid.T, m *mill) {
	flips := rapid.Bool().Draw(r, "flips")
	last := ""
	for range rapid.IntRange(1, 12).Draw(r, "batches") {
		var batch []events.Candidate
		for range rapid.IntRange(1, 6).Draw(r, "turns") {
			m.pass(time.Duration(rapid.IntRange(1, 590).Draw(r, "seconds")) * time.Second)
			if flips {
				if last = rapid.SampledFrom([]string{"tea", ""}).Draw(r, "likes"); last == "" {
					batch = append(batch, m.says("likes", "tea", negated))
				} else {
					batch = append(batch, m.says("likes", "tea"))
				}
				continue
			}
			last = rapid.SampledFrom([]string{"Oslo", "Bergen", "York", "Rome"}).Draw(r, "place")
			batch = append(batch, m.lives(last))
		}
		m.hear(batch...)
		inBounds(r, m)
		if rapid.Bool().Draw(r, "sweeps") {
			m.sweep()
			inBounds(r, m)
		}
	}
	for range 3 {
		m.pass(m.breaker.Window)
		m.sweep()
	}
	inBounds(r, m)
	m.expect(last, "")
}

// inBounds checks that no window has more changes than the limit, and that one
// candidate at most is held.
func inBounds(r *rapid.T, m *mill) {
	var changes []time.Time
	for _, f := range m.History() {
		changes = append(changes, f.UpdatedAt)
	}
	slices.SortFunc(changes, time.Time.Compare)
	for i := 1; i+m.breaker.Limit < len(changes); i++ { // the first is no change
		if changes[i+m.breaker.Limit].Sub(changes[i]) < m.breaker.Window {
			r.Fatalf("%d changes within %v: %v", m.breaker.Limit+1, m.breaker.Window, changes)
		}
	}
	if n := len(m.Held()); n > 1 {
		r.Fatalf("%d candidates are held", n)
	}
}
