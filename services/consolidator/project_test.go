package consolidator

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var bob = scope.Scope{Project: "p", User: "bob"}

// caughtUp is ingest that has stored all episodes.
func caughtUp(context.Context, scope.Scope) (bool, error) { return false, nil }

// restored is a service over a store that has the first n effects of b.
func restored(t *testing.T, b *bench, n int) *bench {
	t.Helper()
	older := newStore()
	for _, e := range b.journal.effects[:n] {
		if err := older.Apply(t.Context(), e.Data, e.Sequence); err != nil {
			t.Fatal(err)
		}
	}
	older.applied = 0
	return benchOver(t, older, b.journal)
}

func (b *bench) mustProject(t *testing.T, in []*pipeline.Entry, want ...string) {
	t.Helper()
	if err := b.project(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if want == nil {
		want = make([]string, len(in))
	}
	if diff := cmp.Diff(want, errs(in)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
		for _, e := range in {
			t.Log(e.Meta.Sequence, e.Err)
		}
	}
}

// TestProjectorAppliesInOrder: the projector applies what the store lacks, once.
func TestProjectorAppliesInOrder(t *testing.T) {
	t.Parallel()
	b := lives(t, 3)
	for kept := range 4 {
		behind := restored(t, b, kept)
		in := b.audit(t)
		behind.mustProject(t, in)
		if behind.store.applied != 3-kept || !cmp.Equal(b.store.facts, behind.store.facts) {
			t.Errorf("%d kept: %d effects applied", kept, behind.store.applied)
		}
		var want, got []string
		for i, e := range in {
			got = append(got, announced(e.Out)...)
			if i >= kept {
				want = append(want, "req-"+string(rune('a'+i)))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d kept: announced (-want +got):\n%s", kept, diff)
		}
		behind.mustProject(t, b.audit(t))
		behind.mustProject(t, b.audit(t)[1:])
		if behind.store.applied != 3-kept {
			t.Errorf("%d kept: %d effects applied when they came again", kept, behind.store.applied)
		}
	}
	erased := restored(t, b, 0)
	erased.store.state.Incarnation = 1
	erased.mustProject(t, b.audit(t))
	if erased.store.applied != 0 {
		t.Errorf("%d effects of an erased scope applied", erased.store.applied)
	}
}

// TestProjectorLeavesOwnCommits: what this process applied, the projector does not
// look up, unless it comes again: then the store may have lost it.
func TestProjectorLeavesOwnCommits(t *testing.T) {
	t.Parallel()
	b := lives(t, 2)
	b.store.faults = &faults{step: "state"} // fails if the store is asked
	b.mustProject(t, b.audit(t))
	b.mustProject(t, b.audit(t)[1:], "retried")
	b.mustProject(t, b.audit(t)[1:])
}

// TestP1ForgottenCommitsAreLookedUp: what this process applied, a store that lost
// it gets from AUDIT all the same.
func TestP1ForgottenCommitsAreLookedUp(t *testing.T) {
	t.Parallel()
	b := lives(t, 1)
	b.Forget()
	b.store.faults = &faults{step: "state"}
	b.mustProject(t, b.audit(t), "retried")
}

// TestProjectorWaitsForCommits: an effect that this process is about to apply is not
// applied by the projector. A commit that hangs holds up nothing for long.
func TestProjectorWaitsForCommits(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"ends": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := lives(t, 1)
				in := b.audit(t)
				later := restored(t, b, 0)
				end := later.own.begin(alice)
				began, done := time.Now(), make(chan error, 1)
				go func() { done <- later.project(t.Context(), in) }()
				synctest.Wait()
				select {
				case err := <-done:
					t.Fatalf("the commit under way was not waited for: %v", err)
				default:
				}
				took, applied := ownWait, 1
				if !hangs {
					took, applied = 0, 0
					later.own.note(b.journal.effects[0].Data)
					end()
				}
				if err := <-done; err != nil || in[0].Err != nil || later.store.applied != applied || time.Since(began) != took {
					t.Errorf("%v, %v, %d applied after %v", err, in[0].Err, later.store.applied, time.Since(began))
				}
			})
		})
	}
}

// crowded is a service over the store of b, which has nothing of alice, and one of
// bob.
func crowded(t *testing.T, b *bench) (*bench, scopes) {
	t.Helper()
	both := scopes{alice: newStore(), bob: newStore()}
	c := benchOver(t, both[alice], b.journal)
	c.deps.Applier = both
	return c, both
}

// mixed is AUDIT with what alice has, and the same of bob, by turns.
func mixed(t *testing.T, b *bench) []*pipeline.Entry {
	t.Helper()
	var all []events.Event[events.EffectCommitted]
	for _, e := range b.journal.effects {
		all = append(all, e, of(bob, e))
	}
	return entries(t, all...)
}

// TestFailingScopeStopsNoOther: the effects behind one that could not be applied wait,
// in its scope alone.
func TestFailingScopeStopsNoOther(t *testing.T) {
	t.Parallel()
	for step, want := range map[string][]string{
		"state":        {"", "retried", "", "retried", "", "retried"},
		"before apply": {"", "", "", "retried", "", "retried"},
		"after apply":  {"", "", "", "retried", "", "retried"},
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			b := lives(t, 3)
			c, both := crowded(t, b)
			both[bob].faults = &faults{step: step, skip: 1}
			if step == "state" {
				both[bob].faults.skip = 0
			}
			in := mixed(t, b)
			c.mustProject(t, in, want...)
			for i, e := range in {
				if e.Err == nil && len(announced(e.Out)) != 1 {
					t.Errorf("effect %d is followed by %v", i, e.Out)
				}
			}
			if both[alice].state.Revision != 3 {
				t.Errorf("alice is at revision %d", both[alice].state.Revision)
			}
			again := slices.DeleteFunc(mixed(t, b), func(e *pipeline.Entry) bool { return e.Meta.Scope != bob })
			c.mustProject(t, again)
			if both[bob].state.Revision != 3 || both[bob].applied != 3 {
				t.Errorf("bob is at revision %d, %d applied", both[bob].state.Revision, both[bob].applied)
			}
		})
	}
}

// TestRefusedEffectStopsItsScopeAlone: the effects behind it find a gap, and are
// buried too. Other scopes go on.
func TestRefusedEffectStopsItsScopeAlone(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(effect map[string]any){
		"its revision": func(e map[string]any) { e["revision"] = "two" },
		"its facts":    func(e map[string]any) { e["facts"] = "none" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := lives(t, 3)
			c, both := crowded(t, b)
			in := mixed(t, b)
			in[2] = broken(t, b.journal.effects[1], change)
			c.mustProject(t, in, "", "", "refused", "", "refused", "")
			wantGap(t, &GapError{Scope: alice, Missing: 2, Next: 3}, in[4].Err)
			if both[alice].state.Revision != 1 || both[bob].state.Revision != 3 {
				t.Errorf("alice is at revision %d, bob at %d", both[alice].state.Revision, both[bob].state.Revision)
			}
			c.deps.Kept = kept(b.journal.effects) // the audit log can read it
			c.mustProject(t, entries(t, b.journal.effects[2]))
			if both[alice].state.Revision != 3 {
				t.Errorf("alice is at revision %d", both[alice].state.Revision)
			}
		})
	}
}

// TestUnreadableKeptEffectBuriesNothing: that the audit log has an effect that cannot
// be read is no fault of the one that follows it.
func TestUnreadableKeptEffectBuriesNothing(t *testing.T) {
	t.Parallel()
	b := lives(t, 2)
	behind := restored(t, b, 0)
	behind.deps.Kept = unreadableLog{err: &events.FieldError{Field: "facts", Code: events.CodeInvalidField, Reason: "is not known"}}
	behind.mustProject(t, b.audit(t)[1:], "retried")
}

// TestOtherEventsArePassed: AUDIT keeps other events, too.
func TestOtherEventsArePassed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := events.FactReturned{Header: events.Header{Scope: alice}, FactIDs: []string{"f"}, At: noon}
	subject, header, body, err := events.Encode(events.Meta{ID: "x", Source: "s", Kind: p.Kind(), Scope: alice, Time: noon}, p)
	if err != nil {
		t.Fatal(err)
	}
	b.store.faults = &faults{step: "state"}
	b.log.err = errors.New("asked for nothing")
	in := []*pipeline.Entry{entry(1, subject, header, body)}
	b.mustProject(t, in)
	if err := b.sink(t.Context(), in); err != nil || in[0].Err != nil {
		t.Error(err, in[0].Err)
	}
}

// TestPanicIsTheCallers: the runtime recovers panics of handlers.
func TestPanicIsTheCallers(t *testing.T) {
	t.Parallel()
	b := lives(t, 1)
	c, both := crowded(t, b)
	both[bob] = nil
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
		if both[alice].state.Revision != 1 {
			t.Error("another scope was not brought up to date")
		}
	}()
	_ = c.project(t.Context(), mixed(t, b))
}

// TestScopeCountsOnOnceEpisodesAreStored: a scope whose watermark ends above its last
// ordinal goes on from there, once ingest has stored what the stream has.
func TestScopeCountsOnOnceEpisodesAreStored(t *testing.T) {
	t.Parallel()
	b := lives(t, 3)
	behind := restored(t, b, 1)
	storing, asked := true, 0
	behind.deps.Behind = func(_ context.Context, fact scope.Scope) (bool, error) {
		if asked++; fact != alice {
			t.Errorf("asked for %s", fact)
		}
		return storing, nil
	}
	for range 2 { // the second time, all of them are applied
		in := b.audit(t)
		behind.mustProject(t, in, "", "", "retried")
		if !errors.Is(in[2].Err, errStoring) || behind.store.state.Revision != 3 || behind.store.state.LastOrdinal != 0 {
			t.Errorf("while episodes are stored: %v, state %+v", in[2].Err, behind.store.state)
		}
	}
	storing = false
	behind.mustProject(t, b.audit(t)[2:])
	if behind.store.state.LastOrdinal != 3 {
		t.Errorf("once they are: state %+v", behind.store.state)
	}
	asked = 0
	behind.mustProject(t, b.audit(t))
	if asked != 0 {
		t.Error("a scope that has its episodes asks whether they are stored")
	}
	lost := restored(t, b, 0)
	lost.deps.Behind = func(context.Context, scope.Scope) (bool, error) { return false, errCrash }
	in := b.audit(t)
	if lost.mustProject(t, in, "", "", "retried"); !errors.Is(in[2].Err, errCrash) || lost.store.state.LastOrdinal != 0 {
		t.Errorf("where nobody can tell: %v, state %+v", in[2].Err, lost.store.state)
	}
}

// TestScopeCountsOnBehindACommit that rolled it forward before the projector came to
// it: the effects that it applied are no commits of this process.
func TestScopeCountsOnBehindACommit(t *testing.T) {
	t.Parallel()
	b := lives(t, 3)
	behind := restored(t, b, 0)
	behind.deps.Behind = caughtUp
	behind.must(t, turn(t, 4, 3, "d"))
	if behind.store.state.Revision != 4 || behind.store.state.LastOrdinal != 0 {
		t.Fatalf("state %+v", behind.store.state)
	}
	behind.mustProject(t, b.audit(t))
	if behind.store.state.LastOrdinal != 4 {
		t.Errorf("state %+v", behind.store.state)
	}
}

func TestAccessIsCoalesced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.store.state.Incarnation = 1
	visit := func(incarnation uint64, at time.Duration, ids ...string) events.Event[events.FactReturned] {
		return events.Event[events.FactReturned]{Data: events.FactReturned{
			Header: events.Header{Scope: alice, Incarnation: incarnation}, FactIDs: ids, At: noon.Add(at),
		}}
	}
	for _, run := range [][]events.Event[events.FactReturned]{
		{visit(1, 2*time.Second, "b", "a"), visit(0, 0, "erased"), visit(1, time.Second, "a")},
		{visit(0, 3*time.Second, "erased")},
		{visit(1, 30*time.Second, "a", "c")},
		{visit(1, 65*time.Second, "a", "c")},
	} {
		if _, err := b.access(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a 12:00:02", "b 12:00:02", "c 12:00:30", "a 12:01:05"}, b.store.touched); diff != "" {
		t.Error(diff)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("zero config: %v", err)
	}
	if err := (Config{Conflicts: -1}).Validate(); err == nil {
		t.Error("negative attempts pass")
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("no dependencies pass")
	}
	if n := len(newBench(t).Stages()); n != 6 {
		t.Errorf("%d stages", n)
	}
}
