package scheduler

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// simulation runs replicas of the scheduler against one world, loses, repeats
// and reorders what it can, and commits what they tick as the consolidator
// would: only if it begins where the last commit ended.
type simulation struct {
	*world
	rt       *rapid.T
	replicas []*Service
	ticks    []events.TickIssued // published, not consumed
	wakes    []events.Event[events.EpisodeStored]
	commits  []events.Event[commit]
	// lagging are commits that the store has not applied.
	lagging []events.TickIssued
	truth   map[claimKey]uint64
	// first is the newest range that was ticked for the first time.
	first map[claimKey]events.Range
}

func (m *simulation) replica() *Service {
	return m.replicas[rapid.IntRange(0, len(m.replicas)-1).Draw(m.rt, "replica")]
}

func (m *simulation) publish(out []events.Payload, err error) {
	if err != nil {
		m.rt.Fatal(err)
	}
	for _, p := range out {
		tick, ok := p.(events.TickIssued)
		if !ok {
			continue
		}
		if err := tick.Validate(); err != nil {
			m.rt.Fatal(err)
		}
		key := claimKey{tick.Scope, tick.Rule}
		if tick.Attempt == 0 {
			if before := m.first[key]; before != tick.Range && before.To > m.truth[key] {
				m.rt.Fatalf("tick %v of %v while %v is under way", tick.Range, key, before)
			}
			m.first[key] = tick.Range
		}
		m.ticks = append(m.ticks, tick)
	}
}

func (m *simulation) say() {
	fact := user("p", rapid.SampledFrom([]string{"a", "b", "c"}).Draw(m.rt, "user"))
	m.wakes = append(m.wakes, m.world.say(fact, rapid.IntRange(1, 9).Draw(m.rt, "n")))
}

// draw takes one of a list, in any order, or none.
func draw[T any](rt *rapid.T, list *[]T) (T, bool) {
	var zero T
	if len(*list) == 0 {
		return zero, false
	}
	i := rapid.IntRange(0, len(*list)-1).Draw(rt, "which")
	x := (*list)[i]
	*list = append((*list)[:i:i], (*list)[i+1:]...)
	return x, true
}

func (m *simulation) wake() {
	if in, ok := draw(m.rt, &m.wakes); ok {
		in.Delivery = rapid.IntRange(1, 2).Draw(m.rt, "delivery")
		out, err := m.replica().wake(context.Background(), in)
		m.publish(out, err)
	}
}

func (m *simulation) consume() {
	tick, ok := draw(m.rt, &m.ticks)
	if !ok {
		return
	}
	key := claimKey{tick.Scope, tick.Rule}
	if tick.Range.From != m.truth[key] {
		return // an old batch
	}
	m.truth[key] = tick.Range.To
	to := tick.Range.To
	m.commits = append(m.commits, events.Event[commit]{
		Meta: events.Meta{Arrived: m.clock(), Delivery: 1},
		Data: commit{Header: tick.Header, Revision: to, Rule: tick.Rule, Watermark: &to},
	})
	m.lagging = append(m.lagging, tick)
	if rapid.Bool().Draw(m.rt, "applied at once") {
		m.catchUp()
	}
}

// catchUp applies in order what the store lacks. Revisions are watermarks here.
func (m *simulation) catchUp() {
	for _, tick := range m.lagging {
		m.mu.Lock()
		state := m.states[tick.Scope]
		state.Watermarks = map[string]uint64{tick.Rule: tick.Range.To}
		state.Revision = tick.Range.To
		m.states[tick.Scope] = state
		m.mu.Unlock()
	}
	m.lagging = nil
}

func (m *simulation) hear() {
	if in, ok := draw(m.rt, &m.commits); ok {
		out, err := m.replica().committed(context.Background(), in)
		m.publish(out, err)
	}
}

func (m *simulation) run(clock func(*Service, context.Context, time.Time) ([]events.Payload, error)) {
	out, err := clock(m.replica(), context.Background(), m.clock())
	m.publish(out, err)
}

// TestSimulation: with lost, late and repeated messages, one tick of a (rule,
// scope) is under way at a time, and in the end all is consolidated.
func TestSimulation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &simulation{
			world: newWorld(), rt: rt,
			truth: make(map[claimKey]uint64), first: make(map[claimKey]events.Range),
		}
		rule := memory.Rule{ID: "turn", Cadence: memory.Cadence{Every: 1}, Enabled: true}
		cfg := Config{Rules: []memory.Rule{rule}, TickEpisodes: 7, Slots: 2}
		for range 2 {
			m.replicas = append(m.replicas, m.service(t, cfg))
		}
		steps := map[string]func(){
			"say":         m.say,
			"wake":        m.wake,
			"lose a wake": func() { draw(rt, &m.wakes) },
			"consume":     m.consume,
			"lose a tick": func() { draw(rt, &m.ticks) },
			"hear":        m.hear,
			"lose a word": func() { draw(rt, &m.commits) },
			"catch up":    m.catchUp,
			"revisit":     func() { m.run((*Service).revisit) },
			"sweep":       func() { m.run((*Service).sweep) },
			"a death": func() {
				at := rapid.IntRange(0, len(m.replicas)-1).Draw(rt, "who")
				m.replicas[at] = m.service(t, cfg)
			},
			"a moment": func() { m.pass(revisitInterval) },
			// A store that lags for longer than ticks are waited for costs a second
			// tick over part of a range, which the consolidator then drops.
			"a minute": func() { m.catchUp(); m.pass(time.Minute) },
		}
		names := []string{
			"say", "say", "wake", "wake", "wake", "consume", "consume", "consume", "hear", "hear", "catch up",
			"lose a wake", "lose a tick", "lose a word", "revisit", "sweep", "a moment", "a minute", "a death",
		}
		for range rapid.IntRange(1, 80).Draw(rt, "steps") {
			steps[rapid.SampledFrom(names).Draw(rt, "step")]()
		}
		// From here on nothing is lost; the sweep alone must bring it to an end.
		for range 200 {
			m.catchUp()
			if m.done() {
				return
			}
			m.pass(time.Hour)
			m.run((*Service).sweep)
			for len(m.ticks) > 0 {
				m.consume()
			}
		}
		rt.Fatalf("consolidated to %v", m.truth)
	})
}

func (m *simulation) done() bool {
	for fact, state := range m.states {
		if m.truth[claimKey{fact, "turn"}] != state.LastOrdinal {
			return false
		}
	}
	return true
}

// follower follows one scheduler with few slots, and since when each scope waits.
type follower struct {
	*world
	rt       *rapid.T
	s        *Service
	underWay []events.TickIssued
	issued   int
	since    map[scope.Scope]int // ticks issued before the scope became due
}

// heed counts issued ticks, and the scopes that are due after them.
func (q *follower) heed(out []events.Payload, err error) {
	for _, tick := range ticksOf(q.rt, out, err) {
		if began, waits := q.since[tick.Scope]; waits && q.issued-began >= queueUsers {
			q.rt.Fatalf("%s waited for %d ticks of others", tick.Scope, q.issued-began)
		}
		q.issued++
		delete(q.since, tick.Scope)
		q.underWay = append(q.underWay, tick)
	}
	for fact, state := range q.states {
		_, waits := q.since[fact]
		busy := slices.ContainsFunc(q.underWay, func(x events.TickIssued) bool { return x.Scope == fact })
		if !waits && !busy && state.LastOrdinal > state.Watermarks[turn.ID] {
			q.since[fact] = q.issued
		}
	}
}

func (q *follower) say(user int) {
	q.heed(q.s.wake(context.Background(), q.world.say(scope.Scope{Project: "p", User: fmt.Sprint(user)}, 1)))
}

// commit consolidates the oldest tick.
func (q *follower) commit() {
	if len(q.underWay) == 0 {
		return
	}
	tick := q.underWay[0]
	q.underWay = q.underWay[1:]
	c, _ := q.apply(tick, false)
	q.heed(q.s.committed(context.Background(), c))
}

const queueUsers = 12

// TestNobodyIsPassedOver: however often the others speak, a scope in which a
// rule is due gets its slot once those have theirs that came before it.
func TestNobodyIsPassedOver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		q := &follower{world: newWorld(), rt: rt, since: make(map[scope.Scope]int)}
		q.s = q.service(t, Config{Rules: []memory.Rule{turn}, TickEpisodes: 3, Slots: 2})
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 2*queueUsers), 20, 300).Draw(rt, "steps") {
			switch {
			case step < queueUsers:
				q.say(step)
			case step < queueUsers+queueUsers/2:
				q.say(0) // one that never stops
			default:
				q.commit()
			}
			q.pass(time.Millisecond)
		}
		for len(q.underWay) > 0 {
			q.commit()
		}
		if len(q.since) > 0 {
			rt.Errorf("never served: %v", q.since)
		}
	})
}
