package scheduler

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	alice = scope.Scope{Project: "p", User: "alice"}
)

func user(project, name string) scope.Scope { return scope.Scope{Project: project, User: name} }

type claimKey struct {
	fact scope.Scope
	rule string
}

// world is a store and a clock: what the scheduler sees.
type world struct {
	mu       sync.Mutex
	now      time.Time
	err      error
	states   map[scope.Scope]memory.State
	episodes map[scope.Scope][]memory.Episode
	sessions map[scope.Scope]memory.Session
	ends     map[scope.Scope][]events.SessionEnd
	claims   map[claimKey]store.Claim
	fires    map[string]time.Time
	holds    []store.DueHold
	decayed  []decayed // by time
	// undescribed are entities, by time.
	undescribed []decayed
	reads       int
	ranges      int         // reads of episodes
	damaged     scope.Scope // whose claims can neither be read nor set
	looks       int         // at the state of a scope
}

// decayed is a fact that is due for pruning from at on.
type decayed struct {
	store.Decayed
	at time.Time
}

func newWorld() *world {
	return &world{
		now:      noon,
		states:   make(map[scope.Scope]memory.State),
		episodes: make(map[scope.Scope][]memory.Episode),
		sessions: make(map[scope.Scope]memory.Session),
		ends:     make(map[scope.Scope][]events.SessionEnd),
		claims:   make(map[claimKey]store.Claim),
		fires:    make(map[string]time.Time),
	}
}

func (w *world) service(t testing.TB, cfg Config) *Service {
	t.Helper()
	s, err := New(cfg, Deps{Schedule: w, Episodes: w, Now: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// say stores n episodes of a session now, and returns the announcement.
func (w *world) say(s scope.Scope, n int) events.Event[events.EpisodeStored] {
	w.mu.Lock()
	defer w.mu.Unlock()
	fact := s.Fact()
	state := w.states[fact]
	state.Scope = fact
	for range n {
		state.LastOrdinal++
		w.episodes[fact] = append(w.episodes[fact], memory.Episode{
			ID: fmt.Sprint(state.LastOrdinal), Scope: s, Ordinal: state.LastOrdinal, Content: "hello", ArrivedAt: w.now,
		})
	}
	w.states[fact] = state
	if s.Session != "" {
		session, known := w.sessions[s]
		if !known {
			session = memory.Session{Scope: s, FirstSeen: w.now}
		}
		session.Live, session.LastSeen, session.LastOrdinal, session.EndedAt = true, w.now, state.LastOrdinal, time.Time{}
		w.sessions[s] = session
	}
	return stored(fact, state.LastOrdinal)
}

func stored(fact scope.Scope, last uint64) events.Event[events.EpisodeStored] {
	return events.Event[events.EpisodeStored]{
		Meta: events.Meta{Scope: fact, Delivery: 1},
		Data: events.EpisodeStored{Header: events.Header{Scope: fact}, LastOrdinal: last},
	}
}

// end ends a session as ingest does.
func (w *world) end(s scope.Scope, lastOrdinal uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	session := w.sessions[s]
	if !session.EndedAt.IsZero() || lastOrdinal != 0 && lastOrdinal != session.LastOrdinal {
		return
	}
	session.EndedAt = w.now
	w.sessions[s] = session
	fact := s.Fact()
	w.ends[fact] = append(w.ends[fact], events.SessionEnd{
		Session: s.Session, LastOrdinal: session.LastOrdinal, Cause: events.EndExplicit, At: w.now,
	})
}

// apply moves a watermark as the consolidator does, if the tick begins there,
// and returns the commit. With lag, the store has yet to apply it.
func (w *world) apply(tick events.TickIssued, lag bool) (events.Event[commit], bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.states[tick.Scope]
	if state.Watermarks[tick.Rule] != tick.Range.From {
		return events.Event[commit]{}, false
	}
	to := tick.Range.To
	c := commit{Header: tick.Header, Revision: state.Revision + 1, Rule: tick.Rule, Watermark: &to, More: state.LastOrdinal > to}
	if !lag {
		state.Revision++
		state.Watermarks = maps.Clone(state.Watermarks)
		if state.Watermarks == nil {
			state.Watermarks = make(map[string]uint64)
		}
		state.Watermarks[tick.Rule] = to
		w.states[tick.Scope] = state
	}
	meta := events.Meta{ID: fmt.Sprintf("%s %s@%d", tick.Scope, tick.Rule, c.Revision), Scope: tick.Scope, Time: w.now, Arrived: w.now, Delivery: 1}
	return events.Event[commit]{Meta: meta, Data: c}, true
}

func (w *world) State(_ context.Context, fact scope.Scope) (memory.State, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	w.looks++
	state := w.states[fact]
	state.Scope = fact
	return state, w.err
}

func (w *world) Pending(_ context.Context, rule string, yield func(store.Pending) bool) error {
	w.mu.Lock()
	var pending []store.Pending
	for _, state := range w.states {
		if state.LastOrdinal > state.Watermarks[rule] {
			p := store.Pending{State: state, Claim: w.claims[claimKey{state.Scope, rule}]}
			for _, end := range w.ends[state.Scope] {
				p.Ended = p.Ended || end.LastOrdinal > state.Watermarks[rule]
			}
			pending = append(pending, p)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(pending, func(a, b store.Pending) int { return strings.Compare(a.Scope.String(), b.Scope.String()) })
	for _, state := range pending {
		if !yield(state) {
			break
		}
	}
	return w.err
}

func (w *world) DueHolds(_ context.Context, at time.Time, yield func(store.DueHold) bool) error {
	w.mu.Lock()
	holds := slices.Clone(w.holds)
	w.mu.Unlock()
	for _, h := range holds {
		if !h.Due.After(at) && !yield(h) {
			break
		}
	}
	return w.err
}

func (w *world) Decayed(_ context.Context, q store.DecayQuery) (due []store.Decayed, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.decayed {
		if !d.at.After(q.At) {
			due = append(due, d.Decayed)
		}
	}
	due = due[min(q.Offset, len(due)):]
	return due[:min(q.Limit, len(due))], w.err
}

func (w *world) Undescribed(_ context.Context, q store.DecayQuery) (due []store.Decayed, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.undescribed {
		if !d.at.After(q.At) {
			due = append(due, d.Decayed)
		}
	}
	due = due[min(q.Offset, len(due)):]
	return due[:min(q.Limit, len(due))], w.err
}

func (w *world) Claim(_ context.Context, fact scope.Scope, rule string, expect, next store.Claim) (store.Claim, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := claimKey{fact, rule}
	if fact == w.damaged && w.damaged != (scope.Scope{}) {
		return store.Claim{}, false, store.ErrDamaged
	}
	if w.err != nil || w.claims[key] != expect {
		return w.claims[key], false, w.err
	}
	w.claims[key] = next
	return next, true, nil
}

func (w *world) Look(ctx context.Context, fact scope.Scope) (store.Standing, error) {
	state, err := w.State(ctx, fact)
	w.mu.Lock()
	defer w.mu.Unlock()
	look := store.Standing{State: state, Claims: map[string]store.Claim{}}
	for key, c := range w.claims {
		if key.fact == fact {
			look.Claims[key.rule] = c
		}
	}
	look.Requested = new(uint64)
	for _, e := range w.episodes[fact] {
		if e.Request {
			*look.Requested = max(*look.Requested, e.Ordinal)
		}
	}
	for _, end := range w.ends[fact] {
		look.Ended = max(look.Ended, end.LastOrdinal)
	}
	for _, session := range w.sessions {
		if session.Scope.Fact() == fact && session.Live && session.EndedAt.IsZero() {
			look.Open++
		}
	}
	if fact == w.damaged && w.damaged != (scope.Scope{}) {
		err = store.ErrDamaged
	}
	return look, err
}

func (w *world) underWay(project string) int {
	n := 0
	for key, c := range w.claims {
		if key.fact.Project == project && c.Range.To > w.states[key.fact].Watermarks[key.rule] {
			n++
		}
	}
	return n
}

func (w *world) LastFire(_ context.Context, rule string) (time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fires[rule], w.err
}

func (w *world) SetLastFire(_ context.Context, rule string, at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.After(w.fires[rule]) {
		w.fires[rule] = at
	}
	return w.err
}

func (w *world) IdleSessions(_ context.Context, at time.Time, yield func(memory.Session) bool) error {
	w.mu.Lock()
	var idle []memory.Session
	for _, s := range w.sessions {
		if s.Live && s.EndedAt.IsZero() && s.LastSeen.Before(at) {
			idle = append(idle, s)
		}
	}
	w.mu.Unlock()
	for _, s := range idle {
		if !yield(s) {
			break
		}
	}
	return w.err
}

func (w *world) OpenSessions(_ context.Context, fact scope.Scope) ([]memory.Session, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	var open []memory.Session
	for _, s := range w.sessions {
		if s.Scope.Fact() == fact && s.EndedAt.IsZero() && s.Live {
			open = append(open, s)
		}
	}
	return open, w.err
}

func (w *world) EndsAbove(_ context.Context, fact scope.Scope, from uint64) ([]events.SessionEnd, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	var above []events.SessionEnd
	for _, e := range w.ends[fact] {
		if e.LastOrdinal > from {
			above = append(above, e)
		}
	}
	return above, w.err
}

func (w *world) EpisodeRange(_ context.Context, fact scope.Scope, r events.Range) ([]memory.Episode, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	w.ranges++
	var in []memory.Episode
	for _, e := range w.episodes[fact] {
		if e.Ordinal > r.From && e.Ordinal <= r.To {
			in = append(in, e)
		}
	}
	return in, w.err
}

func ticksOf(t rapid.TB, out []events.Payload, err error) []events.TickIssued {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var ticks []events.TickIssued
	for _, p := range out {
		if tick, ok := p.(events.TickIssued); ok {
			if err := tick.Validate(); err != nil {
				t.Fatalf("invalid tick %+v: %v", tick, err)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

func endsOf(t testing.TB, out []events.Payload, err error) []events.SessionEnded {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var ends []events.SessionEnded
	for _, p := range out {
		if end, ok := p.(events.SessionEnded); ok {
			if err := end.Validate(); err != nil {
				t.Fatalf("invalid end %+v: %v", end, err)
			}
			ends = append(ends, end)
		}
	}
	return ends
}

// wake hands the service one wake-up.
func (s *Service) wake(ctx context.Context, in events.Event[events.EpisodeStored]) ([]events.Payload, error) {
	return s.stored(ctx, []events.Event[events.EpisodeStored]{in})
}
