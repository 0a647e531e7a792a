package consolidator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/events"
)

func (b *bench) must(t *testing.T, in events.Event[events.DeltasDecided]) []events.Payload {
	t.Helper()
	out, err := b.commit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tea is known before the decisions under test.
var tea = events.Fact{
	ID: "tea", Kind: events.FactSemantic, Text: "Nora likes tea.", Subject: "Nora", Predicate: "likes", Object: "tea",
	Cardinality: events.Many, EventTime: noon, ValidFrom: noon, SourceEpisodeIDs: []string{"e-tea"},
}

// like returns tea with changes.
func like(id, text string, change ...func(*events.Fact)) events.Fact {
	f := tea
	f.ID, f.Text = id, text
	for _, c := range change {
		c(&f)
	}
	return f
}

func object(o string) func(*events.Fact) { return func(f *events.Fact) { f.Object = o } }
func predicate(p, o string) func(*events.Fact) {
	return func(f *events.Fact) { f.Predicate, f.Object = p, o }
}

func provenanceOf(id string, why events.Reason) events.Provenance {
	return events.Provenance{
		ID: "d-" + id, CandidateID: "c-" + id, SourceEpisodeIDs: []string{"e-" + id}, PromotionTS: noon,
		RuleID: "r", Confidence: 1, Reason: why, DecidedBy: "rules@v1",
	}
}

func made[D events.Delta](t testing.TB) func(D, error) events.Delta {
	return func(d D, err error) events.Delta {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func add(t testing.TB, f events.Fact) events.Delta {
	return made[events.Add](t)(events.NewAdd(provenanceOf(f.ID, events.ReasonNew), events.FactPayload{Fact: &f}))
}

func rewrite(t testing.TB, id string, f events.Fact) events.Delta {
	return made[events.Update](t)(events.NewUpdate(provenanceOf(id+"2", events.ReasonRequested), events.FactPayload{Fact: &f}, []string{id}))
}

func closing(t testing.TB, id string) events.Delta {
	return made[events.Delete](t)(events.NewDelete(provenanceOf(id+"3", events.ReasonNegation), []string{id}))
}

func repeat(t testing.TB, id string) events.Delta {
	return made[events.Noop](t)(events.NewNoop(provenanceOf(id+"4", events.ReasonDuplicate), id))
}

// decided is a batch of a rule, decided on where the scope stands.
func (b *bench) decided(rule string, deltas ...events.Delta) events.Event[events.DeltasDecided] {
	in := events.Event[events.DeltasDecided]{Data: events.DeltasDecided{
		Batch: events.Batch{
			Header: events.Header{Scope: alice}, Rule: rule, Cause: events.CauseEvery,
			Range: events.Range{From: b.store.state.Watermarks[rule], To: b.store.state.Watermarks[rule] + 1},
		},
		Basis: b.store.state.Revision, BasisSequence: b.store.state.AuditSeq, Footprint: &events.Footprint{}, Deltas: deltas,
	}}
	in.Meta = events.Meta{
		ID: fmt.Sprintf("m-%s-%d", rule, in.Data.Range.To), Time: noon, Delivery: 1, Scope: alice, Kind: events.KindDeltasDecided,
	}
	return in
}

// asked makes a command of a batch.
func asked(in events.Event[events.DeltasDecided]) events.Event[events.DeltasDecided] {
	ref := events.CommandRef{RequestID: "r-1", Op: events.OpRemember}
	in.ID, in.CorrelationID = "m-asked", "r-1"
	in.Data.Batch = events.Batch{Header: in.Data.Header, Rule: memory.RuleCommand, Cause: events.CauseRequest}
	in.Data.Command = &ref
	in.Data.Asked = &events.CommandRequested{Header: in.Data.Header, CommandRef: ref, Actor: "api:test", At: noon}
	return in
}

// sentBack reports whether a batch or command is to be decided again.
func sentBack(out []events.Payload) bool {
	return slices.ContainsFunc(out, func(p events.Payload) bool {
		return p.Kind() == events.KindCandidatesExtracted || p.Kind() == events.KindCommandRequested
	})
}

// coffee is a decision to add a fact, on a footprint as a decider records it:
// the fact tea was among the similar ones.
func (b *bench) coffee(t testing.TB) events.Event[events.DeltasDecided] {
	f := like("coffee", "Nora likes strong black coffee.", object("coffee"))
	in := b.decided("slow", add(t, f))
	in.Data.Candidates = []events.Candidate{{ID: "c-coffee", Text: f.Text, EventTime: noon, Cardinality: events.Many}}
	in.Data.Footprint = &events.Footprint{
		Facts: map[string]uint64{"tea": 1}, Hashes: []string{memory.HashText(f.Text)},
		Keys: []events.Triple{{Subject: "Nora", Predicate: "likes", Object: "coffee"}, {Subject: "Nora", Predicate: "lives_in"}},
	}
	return in
}

// TestStalenessIsThatOfTheFootprint: a commit since the basis sends a batch back
// only if it changed something in the footprint, for ticks and commands alike.
func TestStalenessIsThatOfTheFootprint(t *testing.T) {
	t.Parallel()
	held := func(factID string, c events.Candidate) func(t testing.TB) []events.Delta {
		return func(t testing.TB) []events.Delta {
			h := events.Hold{ID: "c-held", Candidate: c, HeldAt: noon, Why: "churn", FactID: factID}
			return []events.Delta{made[events.Add](t)(events.NewAdd(provenanceOf("held", events.ReasonChurn), events.FactPayload{Hold: &h}))}
		}
	}
	one := func(d func(t testing.TB) events.Delta) func(t testing.TB) []events.Delta {
		return func(t testing.TB) []events.Delta { return []events.Delta{d(t)} }
	}
	adding := func(f events.Fact) func(t testing.TB) []events.Delta {
		return one(func(t testing.TB) events.Delta { return add(t, f) })
	}
	for name, tc := range map[string]struct {
		since func(t testing.TB) []events.Delta
		want  bool
	}{
		"nothing learned":               {func(testing.TB) []events.Delta { return nil }, false},
		"another fact":                  {adding(like("x", "Nora was born in Bergen.", predicate("born_in", "Bergen"))), false},
		"another object":                {adding(like("x", "Nora likes milk.", object("milk"))), false},
		"the same text":                 {adding(like("x", "Nora likes strong black coffee.", predicate("", ""))), true},
		"nearly the same text":          {adding(like("x", "Nora likes the strong black coffee.", predicate("drinks", "it"))), true},
		"the same triple":               {adding(like("x", "Coffee pleases her.", object("The Coffee"))), true},
		"the same key, one value":       {adding(like("x", "Only milk.", object("milk"), func(f *events.Fact) { f.Cardinality = events.One })), true},
		"a key that was asked whole":    {adding(like("x", "In Oslo.", predicate("lives_in", "Oslo"))), true},
		"a fact that was used, closed":  {one(func(t testing.TB) events.Delta { return closing(t, "tea") }), true},
		"a fact that was used, changed": {one(func(t testing.TB) events.Delta { return rewrite(t, "tea", like("tea", "Nora loves tea.")) }), true},
		"a fact that was used, sources": {one(func(t testing.TB) events.Delta { return repeat(t, "tea") }), false},
		"a fact that was not used":      {one(func(t testing.TB) events.Delta { return closing(t, "other") }), false},
		"a fact that leaves the key": {one(func(t testing.TB) events.Delta {
			return rewrite(t, "home", like("home", "Gone.", predicate("visited", "Rome")))
		}), true},
		"held on a fact that was used": {held("tea", events.Candidate{}), true},
		"held on the key":              {held("", events.Candidate{Subject: "Nora", Predicate: "lives_in", Object: "Rome"}), true},
		"held elsewhere":               {held("other", events.Candidate{Subject: "Nora", Predicate: "likes", Object: "milk"}), false},
	} {
		for _, kind := range []string{"tick", "command"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				b := newBench(t)
				b.must(t, b.decided("quick", add(t, tea), add(t, like("other", "Bo skis.", predicate("skis", "well"))),
					add(t, like("home", "In Rome.", predicate("lives_in", "Rome")))))
				in := b.coffee(t)
				if kind == "command" {
					in = asked(in)
				}
				b.must(t, b.decided("quick", tc.since(t)...))
				b.must(t, b.decided("quick")) // and an episode that says nothing
				if got := sentBack(b.must(t, in)); got != tc.want {
					t.Fatalf("sent back: %v, want %v", got, tc.want)
				}
				if _, known := b.store.facts["coffee"]; known == tc.want {
					t.Errorf("the fact is known: %v", known)
				}
			})
		}
	}
}

// TestIdleChatterMakesNothingStale: a slow decision is as good as ever after any
// number of effects that it did not look at.
func TestIdleChatterMakesNothingStale(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, b.decided("quick", add(t, tea)))
	in := b.coffee(t)
	for n := range 300 {
		if n%10 == 0 {
			b.must(t, b.decided("quick", add(t, like(fmt.Sprint("x", n), fmt.Sprint("Bo saw bird ", n), predicate("saw", fmt.Sprint(n))))))
		} else {
			b.must(t, b.decided("quick"))
		}
	}
	if out := b.must(t, in); sentBack(out) || b.store.facts["coffee"].Revision != 1 || b.store.state.Watermarks["slow"] != 1 {
		t.Errorf("out %+v", out)
	}
}

// TestRewriteRestsOnTheWholeFact: sources and sessions that a fact gains are part
// of what a delta rewrites.
func TestRewriteRestsOnTheWholeFact(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, b.decided("quick", add(t, tea)))
	in := b.decided("slow", rewrite(t, "tea", like("tea", "Nora loves tea.")))
	in.Data.Footprint.Facts = map[string]uint64{"tea": 1}
	b.must(t, b.decided("quick", repeat(t, "tea")))
	if !sentBack(b.must(t, in)) {
		t.Error("a rewrite of what the fact was before stands")
	}
}

// TestBatchWithoutFootprint is one of the version before: it is stale as soon as
// the scope moved, and stands where it did not.
func TestBatchWithoutFootprint(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tick", "command"} {
		b := newBench(t)
		earlier := func() events.Event[events.DeltasDecided] {
			in := b.coffee(t)
			in.Data.Footprint = nil
			if kind == "command" {
				return asked(in)
			}
			in.Data.BasisSequence = 0
			return in
		}
		in := earlier()
		b.must(t, b.decided("quick"))
		if !sentBack(b.must(t, in)) {
			t.Errorf("%s: stands on another revision", kind)
		}
		if out := b.must(t, earlier()); sentBack(out) || b.store.facts["coffee"].Revision != 1 {
			t.Errorf("%s: %+v", kind, out)
		}
	}
}

// TestStaleBatchWaitsAndIsNeverBuried: it is sent back at once, then after pauses
// that grow, however often.
func TestStaleBatchWaitsAndIsNeverBuried(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"tick", "command"} {
		b := newBench(t)
		in := b.coffee(t)
		if kind == "command" {
			in = asked(in)
		}
		b.must(t, b.decided("quick", add(t, like("x", "Nora likes strong black coffee."))))
		last := time.Duration(0)
		for n := range 500 {
			in.Delivery = 1
			if n > 0 {
				_, err := b.commit(t.Context(), in)
				pause, postponed := pipeline.Postponed(err)
				if !postponed || pipeline.IsRefused(err) || pause < last || pause > 30*time.Second || n < 5 && pause == last {
					t.Fatalf("%s, stale %d times: %v, %v after %v", kind, n, err, pause, last)
				}
				last = pause
				in.Delivery = 2
			}
			out := b.must(t, in)
			switch next := out[0].(type) {
			case events.CandidatesExtracted:
				if next.Stale != n+1 || next.Attempt != n+1 || next.Range != in.Data.Range || len(next.Candidates) != 1 {
					t.Fatalf("after %d: %+v", n, next)
				}
				in.Data.Batch = next.Batch
			case events.CommandRequested:
				if next.Attempt != n+1 || slices.Equal(next.Identity(), in.Data.Asked.Identity()) {
					t.Fatalf("after %d: %+v", n, next)
				}
				in.Data.Asked = &next
			default:
				t.Fatalf("out %+v", out)
			}
		}
		if len(b.journal.effects) != 1 || last != 30*time.Second {
			t.Errorf("%s: %d effects, the last pause is %v", kind, len(b.journal.effects), last)
		}
	}
}

// TestDroppedEffectsMakeStale: what AUDIT no longer holds cannot be judged.
func TestDroppedEffectsMakeStale(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, b.decided("quick", add(t, tea)))
	in := b.coffee(t)
	for range 3 {
		b.must(t, b.decided("quick"))
	}
	for _, rest := range [][]events.Event[events.EffectCommitted]{b.journal.effects[2:], b.journal.effects[:2]} {
		b.journal.effects = rest
		if !sentBack(b.must(t, in)) {
			t.Error("stands though an effect since its basis is gone")
		}
	}
}

// TestRivalCommitsBetweenCheckAndAppend: AUDIT refuses what was checked against
// an older state, and the batch is judged again on the newer one.
func TestRivalCommitsBetweenCheckAndAppend(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rival events.Fact
		want  bool
	}{
		"elsewhere":    {like("x", "Bo skis.", predicate("skis", "well")), false},
		"on its words": {like("x", "Nora likes strong black coffee."), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.must(t, b.decided("quick", add(t, tea)))
			in := b.coffee(t)
			other := benchOver(t, b.store, b.journal) // another process
			b.journal.meanwhile = func() { other.must(t, other.decided("quick", add(t, tc.rival))) }
			out := b.must(t, in)
			if got := sentBack(out); got != tc.want || len(b.journal.effects) != 3 && !tc.want || len(b.journal.effects) != 2 && tc.want {
				t.Errorf("sent back: %v, %d effects", got, len(b.journal.effects))
			}
		})
	}
}

// TestAfterImageIsOfCurrentRows: a batch that stands on an older basis changes
// the rows as they are, not as the decision saw them.
func TestAfterImageIsOfCurrentRows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, b.decided("quick", add(t, tea)))
	in := b.decided("slow", made[events.Noop](t)(events.NewNoop(provenanceOf("slow", events.ReasonDuplicate), "tea")))
	in.Data.Footprint.Facts = map[string]uint64{"tea": 1}
	b.must(t, b.decided("quick", repeat(t, "tea")))
	b.must(t, in)
	if got := b.store.facts["tea"].SourceEpisodeIDs; !slices.Equal(got, []string{"e-tea", "e-tea4", "e-slow"}) || b.store.state.Revision != 3 {
		t.Errorf("sources %v at revision %d", got, b.store.state.Revision)
	}
}
