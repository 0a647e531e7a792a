package consolidator

import (
	"errors"
	"slices"
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// remember is a decided command that adds one fact, on a basis.
func remember(t testing.TB, request string, on memory.State, attempt int, f events.Fact) events.Event[events.DeltasDecided] {
	t.Helper()
	f.Kind, f.EventTime, f.ValidFrom, f.Cardinality = events.FactSemantic, noon, noon, events.Many
	prov := events.Provenance{
		ID: "d-" + request, CandidateID: "c-" + request, RequestID: request, PromotionTS: noon,
		RuleID: "api", Confidence: 1, Reason: events.ReasonNew, DecidedBy: "api:test",
	}
	add, err := events.NewAdd(prov, events.FactPayload{Fact: &f})
	if err != nil {
		t.Fatal(err)
	}
	c := events.Candidate{ID: prov.CandidateID, Text: f.Text, Subject: f.Subject, Predicate: f.Predicate, Object: f.Object, Cardinality: events.Many, EventTime: noon}
	ref := events.CommandRef{RequestID: request, Op: events.OpRemember}
	in := events.Event[events.DeltasDecided]{Data: events.DeltasDecided{
		Batch: events.Batch{Header: events.Header{Scope: alice}, Rule: memory.RuleCommand}, Command: &ref,
		Asked: &events.CommandRequested{
			Header: events.Header{Scope: alice}, CommandRef: ref, Actor: "api:test", Candidate: &c, At: noon, Attempt: attempt,
		},
		Basis: on.Revision, BasisSequence: on.AuditSeq, Deltas: events.Deltas{add}, Candidates: []events.Candidate{c},
	}}
	in.Meta = events.Meta{ID: "m-" + request, CorrelationID: request, Time: noon, Delivery: 1, Scope: alice, Kind: events.KindDeltasDecided}
	return in
}

var tea = events.Fact{ID: "f1", Text: "Nora likes tea.", Subject: "Nora", Predicate: "likes", Object: "tea"}

func (b *bench) must(t *testing.T, in events.Event[events.DeltasDecided]) []events.Payload {
	t.Helper()
	out, err := b.commit(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOvertakenCommandIsDecidedAgain(t *testing.T) {
	t.Parallel()
	reworded, other, unrelated := tea, tea, tea
	reworded.ID, reworded.Text = "f2", "Nora likes the tea"
	other.ID, other.Text, other.Object = "f2", "Nora likes coffee.", "coffee"
	unrelated.ID, unrelated.Text, unrelated.Predicate, unrelated.Object = "f2", "Nora was born in Bergen.", "born_in", "Bergen"
	same := tea
	same.ID = "f2"
	for name, tc := range map[string]struct {
		second events.Fact
		again  bool
	}{"same text": {same, true}, "same triple": {reworded, true}, "other object": {other, false}, "unrelated": {unrelated, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			nothing := b.store.state
			b.must(t, remember(t, "r1", nothing, 0, tea))
			in := remember(t, "r2", nothing, 0, tc.second)
			out := b.must(t, in)
			next, again := events.CommandRequested{}, false
			if len(out) == 1 {
				next, again = out[0].(events.CommandRequested)
			}
			if again != tc.again {
				t.Fatalf("out %+v, want to be decided again: %v", out, tc.again)
			}
			if !again {
				return
			}
			if next.Attempt != 1 || next.RequestID != "r2" || next.Candidate == nil || len(b.journal.effects) != 1 {
				t.Errorf("next %+v, %d effects", next, len(b.journal.effects))
			}
			if slices.Equal(next.Identity(), in.Data.Asked.Identity()) {
				t.Error("the stream would take it for the command that it holds")
			}
		})
	}
}

func TestCommandRacesBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	nothing := b.store.state
	b.must(t, turn(t, 1, 0, "f1")) // says "f1"
	same := events.Fact{ID: "f2", Text: "f1"}
	if out := b.must(t, remember(t, "r1", nothing, 0, same)); len(b.journal.effects) != 1 || len(announced(out)) != 0 {
		t.Errorf("out %+v, %d effects", out, len(b.journal.effects))
	}
	// And the other way round: the batch carries a basis.
	b.must(t, remember(t, "r1", b.store.state, 1, same))
	out := b.must(t, turn(t, 2, 1, "f3"))
	if next, ok := out[0].(events.CandidatesExtracted); !ok || next.Attempt != 1 {
		t.Errorf("out %+v", out)
	}
}

func TestCommittedCommandIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	in := remember(t, "r1", b.store.state, 0, tea)
	b.must(t, in)
	in.Delivery = 2
	if out := b.must(t, in); !slices.Equal(announced(out), []string{"r1"}) || len(b.journal.effects) != 1 {
		t.Errorf("out %+v, %d effects", out, len(b.journal.effects))
	}
}

func TestCommandThatIsAlwaysOvertakenConflicts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	nothing := b.store.state
	b.must(t, remember(t, "r1", nothing, 0, tea))
	same := tea
	same.ID = "f2"
	b.must(t, remember(t, "r2", nothing, 5, same))
	last := b.journal.effects[len(b.journal.effects)-1].Data
	if len(last.Facts) != 0 || last.Outcomes[0].Conflict == "" || last.Outcomes[0].Results[0].Reason != events.ReasonChangedSince {
		t.Errorf("effect %+v", last)
	}
}

func TestRepeatedFactStandsWhileItSaysTheSame(t *testing.T) {
	t.Parallel()
	prov := events.Provenance{ID: "d", RequestID: "r", PromotionTS: noon, RuleID: "api", Reason: events.ReasonDuplicate, DecidedBy: "api:test"}
	noop, err := events.NewNoop(prov, "f1")
	if err != nil {
		t.Fatal(err)
	}
	g := groundOf(events.DeltasDecided{Deltas: events.Deltas{noop}, Candidates: []events.Candidate{{Text: tea.Text}}})
	closed, rewritten := tea, tea
	closed.ValidUntil, rewritten.Text = &noon, "Nora prefers coffee over anything."
	for name, tc := range map[string]struct {
		f    events.Fact
		want bool
	}{"more sources": {tea, false}, "closed": {closed, true}, "rewritten": {rewritten, true}, "another": {events.Fact{ID: "f9", Text: "x"}, false}} {
		if got := g.shaken(tc.f); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A store whose effects AUDIT lost can commit nothing, and says why.
func TestStoreAheadOfAuditIsNamed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(t, turn(t, 1, 0, "f1"))
	b.must(t, turn(t, 2, 1, "f2"))
	b.journal.effects = b.journal.effects[:1]
	if _, err := b.commit(t.Context(), turn(t, 3, 2, "f3")); !errors.Is(err, ErrAhead) {
		t.Errorf("err = %v, want %v", err, ErrAhead)
	}
}
