package decider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"palimpsest/internal/decide"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

func TestDecideBatch(t *testing.T) {
	t.Parallel()
	f := newFake()
	in := batch(says("e1", "likes", "tea", 1), says("e2", "likes", "tea", 2))
	in.Data.Rule = memory.RuleSleep
	hedged, unsafe := says("e3", "likes", "jazz", 3), says("e4", "likes", "doors", 4)
	hedged.Hedged, unsafe.Unsafe = true, true
	in.Data.Candidates = append(in.Data.Candidates, hedged, unsafe)
	out, letters := decided(t, open(t, f, Config{}), in)
	want := []string{"noop safety", "noop held_expired", "add new", "noop duplicate"}
	if diff := cmp.Diff(want, kinds(out.Deltas)); diff != "" || len(letters) > 0 {
		t.Errorf("deltas (-want +got), %d letters:\n%s", len(letters), diff)
	}
	if diff := cmp.Diff(in.Data.Candidates, out.Candidates); diff != "" {
		t.Errorf("candidates travel on:\n%s", diff)
	}
	if diff := cmp.Diff(in.Data.Batch, out.Batch); diff != "" || len(out.SessionEnds) != 1 || len(out.Episodes) != 1 {
		t.Errorf("batch travels on:\n%s", diff)
	}
	ids := map[string]bool{}
	for _, d := range out.Deltas {
		p := d.Provenance()
		ids[p.ID] = true
		if p.DecidedBy != deterministic.Name || !p.PromotionTS.Equal(in.Time) || p.RuleID != "test" || len(p.SourceEpisodeIDs) != 1 {
			t.Errorf("provenance %+v", p)
		}
	}
	if len(ids) != len(out.Deltas) {
		t.Errorf("%d ids for %d deltas", len(ids), len(out.Deltas))
	}
	if m := out.Mentions[out.Deltas[2].Provenance().ID]; len(m) != 1 || m[0].Name != "tea" {
		t.Errorf("mentions of the added fact: %v", m)
	}
	again, _ := decided(t, open(t, f, Config{}), in)
	if a, b := mustJSON(t, out), mustJSON(t, again); a != b {
		t.Errorf("a redelivered batch is decided otherwise:\n%s\n%s", a, b)
	}
}

// TestHeldCandidateIsAuditedOnce: each rule reads the candidate from the same
// episode, and exactly one of them says that it is held.
func TestHeldCandidateIsAuditedOnce(t *testing.T) {
	t.Parallel()
	quick := memory.Rule{ID: "quick", CommitOnly: true, Enabled: true}
	whole := memory.Rule{ID: "whole", Enabled: true}
	off, narrow := whole, whole
	off.Enabled, narrow.Then = false, []events.FactKind{events.FactSummary}
	for name, tc := range map[string]struct {
		rules []memory.Rule
		held  map[string]int // by rule
	}{
		"shipped":       {rules.Shipped(), map[string]int{memory.RuleTurn: 0, memory.RuleSleep: 1}},
		"left to whole": {[]memory.Rule{quick, whole}, map[string]int{"quick": 0, "whole": 1}},
		"nobody else":   {[]memory.Rule{quick, off}, map[string]int{"quick": 1}},
		"not its kind":  {[]memory.Rule{quick, narrow}, map[string]int{"quick": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newFake(), Config{Rules: tc.rules})
			for rule, want := range tc.held {
				hedged := says("e3", "likes", "jazz", 3)
				hedged.Hedged = true
				in := batch(hedged, says("e4", "likes", "tea", 4))
				in.Data.Rule, in.Data.SessionEnds = rule, nil
				out, _ := decided(t, s, in)
				held := 0
				for _, d := range out.Deltas {
					if add, ok := d.(events.Add); ok && add.Payload().Hold != nil && d.Provenance().Reason == events.ReasonHeld {
						held++
					}
				}
				if held != want || len(out.Candidates) != 1+want || len(out.Deltas) != 1+want {
					t.Errorf("rule %s: %d of %d deltas are held, %d candidates go on; want %d held", rule, held, len(out.Deltas), len(out.Candidates), want)
				}
			}
		})
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestEmptyAndSkippedBatchesGoOn(t *testing.T) {
	t.Parallel()
	s := open(t, newFake(), Config{})
	out, _ := decided(t, s, batch())
	if len(out.Deltas) != 0 || out.Range.To != 4 {
		t.Errorf("empty batch became %+v", out)
	}
	in := batch(says("e1", "likes", "tea", 1))
	in.Data.Skipped = "poison"
	if out, _ = decided(t, s, in); len(out.Deltas) != 0 || out.Skipped != "poison" {
		t.Errorf("skipped batch became %+v", out)
	}
}

// TestBasisIsReadBeforeTheLookups: a commit during the decision is a change since
// its basis.
func TestBasisIsReadBeforeTheLookups(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := open(t, f, Config{})
	commit(t, f, s, batch(says("e8", "likes", "jazz", 1)))
	f.states = 0
	f.onState = func(int) {
		f.onState = nil
		f.onLookup = func() { commit(t, f, s, batch(says("e9", "likes", "tea", 2))) }
	}
	out, _ := decided(t, s, batch(says("e1", "likes", "tea", 3)))
	if out.Basis != 1 || out.Footprint == nil || f.mem.Revision() != 2 {
		t.Errorf("decided on basis %d at revision %d, footprint %+v", out.Basis, f.mem.Revision(), out.Footprint)
	}
	if f.states != 2 { // one of them is that of the other batch
		t.Errorf("the state was read %d times", f.states)
	}
}

// TestNothingIsLookedUpBeforeTheFirstEffect: a scope without one has no facts.
func TestNothingIsLookedUpBeforeTheFirstEffect(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := open(t, f, Config{})
	f.onLookup = func() { t.Error("the store was asked") }
	out, _ := decided(t, s, batch(says("e1", "likes", "tea", 1)))
	if len(out.Deltas) != 1 {
		t.Errorf("deltas %+v", out.Deltas)
	}
}

// TestNewScopeIsDecidedOnUnread: a batch of a scope that was new has the revision 0 as
// its basis and reads no facts, also if there are some by now: the consolidator finds it
// stale. When it returns, it is decided on the known facts.
func TestNewScopeIsDecidedOnUnread(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := open(t, f, Config{})
	commit(t, f, s, batch(says("e8", "likes", "tea", 1)))
	f.states, f.onLookup = 0, func() { t.Error("the store was asked") }
	in := batch(says("e1", "likes", "tea", 2))
	in.Data.New = true
	out, _ := decided(t, s, in)
	if diff := cmp.Diff([]string{"add new"}, kinds(out.Deltas)); diff != "" || out.Basis != 0 || out.New || f.states != 0 {
		t.Errorf("basis %d, new %t, %d looks, deltas (-want +got):\n%s", out.Basis, out.New, f.states, diff)
	}
	if len(out.Footprint.Hashes) != 1 || len(out.Footprint.Keys) != 1 {
		t.Errorf("footprint %+v", out.Footprint)
	}
	f.onLookup = nil
	in.Data.Batch = out.Batch
	out, _ = decided(t, s, in)
	if diff := cmp.Diff([]string{"noop duplicate"}, kinds(out.Deltas)); diff != "" || out.Basis != 1 {
		t.Errorf("sent back: basis %d, deltas (-want +got):\n%s", out.Basis, diff)
	}
}

// TestNewScopeThatRefusesIsRead: a fact that a candidate replaces may be there by now.
func TestNewScopeThatRefusesIsRead(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := open(t, f, Config{})
	commit(t, f, s, batch(says("e8", "likes", "tea", 1)))
	f.states = 0
	changed := says("e1", "likes", "milk", 2)
	changed.Intent, changed.Replaces = "update", []string{f.mem.Facts()[0].ID}
	in := batch(changed)
	in.Data.New = true
	out, letters := decided(t, s, in)
	if diff := cmp.Diff([]string{"update requested"}, kinds(out.Deltas)); diff != "" || out.Basis != 1 || len(letters) > 0 {
		t.Errorf("basis %d, %d letters, deltas (-want +got):\n%s", out.Basis, len(letters), diff)
	}
}

// TestFootprint is what the decisions of a batch looked at, and nothing else.
func TestFootprint(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := open(t, f, Config{})
	commit(t, f, s, batch(says("e9", "likes", "jazz", 1)))
	home, hedged := says("e2", "lives_in", "Oslo", 2), says("e3", "likes", "milk", 3)
	home.Cardinality, hedged.Hedged = events.One, true
	home.Retracts = []events.Triple{{Subject: "user", Predicate: "works", Object: "Rome"}}
	out, _ := decided(t, s, batch(says("e1", "likes", "tea", 2), home, hedged))
	want := &events.Footprint{
		Facts:  map[string]uint64{},
		Hashes: []string{memory.HashText("The user likes tea."), memory.HashText("The user lives_in Oslo.")},
		Keys: []events.Triple{
			{Subject: "user", Predicate: "likes", Object: "tea"}, {Subject: "user", Predicate: "lives_in"},
			{Subject: "user", Predicate: "works"},
		},
	}
	slices.Sort(want.Hashes)
	if diff := cmp.Diff(want, out.Footprint, cmpopts.IgnoreMapEntries(func(string, uint64) bool { return true })); diff != "" || out.Basis != 1 {
		t.Errorf("basis %d, footprint (-want +got):\n%s", out.Basis, diff)
	}
	for id, revision := range out.Footprint.Facts {
		if known, _ := f.mem.ByID(t.Context(), []string{id}); len(known) != 1 || known[0].Revision != revision {
			t.Errorf("the footprint names %s at revision %d", id, revision)
		}
	}
	silent, _ := decided(t, s, batch(hedged))
	if diff := cmp.Diff(&events.Footprint{}, silent.Footprint, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the footprint of a batch on which nothing is decided (-want +got):\n%s", diff)
	}
}

// TestFirstAnswerCounts: a fact that was committed between two lookups is not
// known at the revision that the second one shows.
func TestFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	look := newTrail(nil)
	look.see([]string{"a", "b"}, []events.Fact{{ID: "a", Revision: 1}, {ID: "a", Revision: 2}})
	look.see([]string{"a", "b"}, []events.Fact{{ID: "a", Revision: 3}, {ID: "b", Revision: 1}, {ID: "c", Revision: 4}})
	if diff := cmp.Diff(map[string]uint64{"a": 2, "b": 0, "c": 4}, look.footprint().Facts); diff != "" {
		t.Error(diff)
	}
}

// commit decides a batch and makes it known.
func commit(t *testing.T, f *fake, s *Service, in events.Event[events.CandidatesExtracted]) {
	t.Helper()
	f.onLookup = nil
	out, _ := decided(t, s, in)
	if _, err := f.mem.Commit(out, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func TestConflictBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := open(t, f, Config{})
	bad, odd := says("e1", "likes", "tea", 1), says("e2", "likes", "milk", 2)
	bad.Intent, bad.Replaces = "update", []string{"nowhere"}
	odd.Intent = "merge"
	out, letters := decided(t, s, batch(bad, odd, says("e3", "likes", "jazz", 3)))
	want := []string{"noop fact_conflict", "noop fact_conflict", "add new"}
	if diff := cmp.Diff(want, kinds(out.Deltas)); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	if len(letters) != 2 {
		t.Fatalf("%d dead letters, want 2", len(letters))
	}
	if l := letters[0]; l.Code != events.CodeFactConflict || l.Field != "metadata.replaces" || l.Stream != "CANDIDATES" || l.Sequence != 7 {
		t.Errorf("letter %+v", l)
	}
	var again events.CandidatesExtracted // what a retry sends
	if err := json.Unmarshal(letters[0].Data, &again); err != nil {
		t.Fatal(err)
	}
	if r := again.Range; len(again.Candidates) != 1 || again.Candidates[0].ID != bad.ID || !r.Empty() || r.To != out.Range.To || again.Rule != out.Rule || again.Scope != out.Scope {
		t.Errorf("the letter keeps %+v", again)
	}
	if l := letters[1]; l.Code != events.CodeInvalidField || l.Field != "metadata.intent" {
		t.Errorf("letter %+v", l)
	}
	if f.states != 2 {
		t.Errorf("the state was read %d times, want 2: a conflict is decided again once", f.states)
	}
}

// A conflict has both sides: the dead letter holds the candidate, and the revision and
// value of each fact that it names.
func TestConflictNamesBothSides(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := open(t, f, Config{})
	first, _ := decided(t, s, batch(says("e1", "likes", "tea", 1)))
	if _, err := f.mem.Commit(first, noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	known := f.mem.Facts()[0]
	bad := says("e2", "likes", "milk", 2)
	bad.Intent, bad.Replaces = "update", []string{known.ID, "nowhere"}
	_, letters := decided(t, s, batch(bad))
	if len(letters) != 1 || letters[0].Code != events.CodeFactConflict {
		t.Fatalf("letters %+v", letters)
	}
	var shown sides
	if err := json.Unmarshal(letters[0].Data, &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Candidates) != 1 || shown.Candidates[0].Object != "milk" {
		t.Errorf("the letter says %+v", shown.Candidates)
	}
	if diff := cmp.Diff([]string{"nowhere"}, shown.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	if len(shown.Found) != 1 || shown.Found[0].ID != known.ID || shown.Found[0].Revision != known.Revision || shown.Found[0].Object != "tea" || shown.Found[0].Text != known.Text {
		t.Errorf("found %+v, want %+v", shown.Found, known)
	}
	for _, side := range []string{`"nowhere" is unknown`, fmt.Sprintf("%s is at revision %d", known.ID, known.Revision)} {
		if !strings.Contains(letters[0].Reason, side) {
			t.Errorf("the reason is %q, without %q", letters[0].Reason, side)
		}
	}
}

func TestCandidateThatNoFactCanBeMadeOf(t *testing.T) {
	t.Parallel()
	broken := says("e1", "likes", "tea", 1)
	broken.Confidence, broken.RuleID, broken.SourceEpisodeIDs = 7, "", nil
	out, letters := decided(t, open(t, newFake(), Config{}), batch(broken, says("e2", "likes", "jazz", 2)))
	if diff := cmp.Diff([]string{"noop fact_conflict", "add new"}, kinds(out.Deltas)); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	if len(letters) != 1 || letters[0].Field != "confidence" {
		t.Errorf("letters %+v, want one that names confidence", letters)
	}
}

// What a candidate says that it ends is checked, and the letter names the member.
func TestP8RetractsAreChecked(t *testing.T) {
	t.Parallel()
	broken := says("e1", "likes", "tea", 1)
	broken.Retracts = []events.Triple{{Subject: "user", Predicate: "likes", Object: "rum"}, {Subject: "user"}}
	out, letters := decided(t, open(t, newFake(), Config{}), batch(broken, says("e2", "likes", "jazz", 2)))
	if diff := cmp.Diff([]string{"noop fact_conflict", "add new"}, kinds(out.Deltas)); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
	if len(letters) != 1 || letters[0].Code != events.CodeInvalidField || letters[0].Field != "retracts[1]" || !strings.Contains(letters[0].Reason, "needs a predicate or an object") {
		t.Errorf("letters %+v, want one that names retracts[1]", letters)
	}
}

func TestErasedScopeIsLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.incarnation = 1
	payloads, err := open(t, f, Config{}).decide(context.Background(), batch(says("e1", "likes", "tea", 1)))
	if err != nil || len(payloads) != 0 {
		t.Errorf("payloads %v, error %v, want nothing", payloads, err)
	}
}

func TestStoreErrorsAreRetried(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.err = errors.New("down")
	if _, err := open(t, f, Config{}).decide(context.Background(), batch()); !errors.Is(err, f.err) {
		t.Errorf("error %v, want the store's", err)
	}
}

// TestP1NothingIsDecidedOnLostRows: the reads of a decision may have missed rows that
// the store lost meanwhile.
func TestP1NothingIsDecidedOnLostRows(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.lost = store.ErrLost
	if out, err := open(t, f, Config{}).decide(t.Context(), batch()); !errors.Is(err, store.ErrLost) {
		t.Errorf("decided %v, error %v, want the loss", out, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	f := newFake()
	deps := Deps{State: f, Whole: f, Facts: f, Search: f, Deciders: map[string]decide.Decider{DefaultDecider: deterministic.New()}}
	for name, cfg := range map[string]Config{
		"unknown decider": {Rules: []memory.Rule{{ID: "x", Decider: "nobody"}}},
		"unknown default": {Decider: "nobody"},
		"rule without id": {Rules: []memory.Rule{{}}},
		"rule twice":      {Rules: []memory.Rule{{ID: "x"}, {ID: "x"}}},
	} {
		if _, err := New(cfg, deps); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(Config{}, Deps{}); err == nil {
		t.Error("missing dependencies: no error")
	}
	s, err := New(Config{}, deps)
	if err != nil || s.Name() != "decider" || len(s.Stages()) != 4 {
		t.Errorf("New: %v, %v", s, err)
	}
}
