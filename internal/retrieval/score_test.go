package retrieval

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/embed"
	"palimpsest/internal/lex"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var day = time.Date(2025, 3, 10, 12, 0, 0, 0, time.UTC)

// said is a conversation: turn n of it has the ordinal n+1 and the id "n+1".
type said []memory.Episode

func turn(session, speaker, text string) memory.Episode {
	return memory.Episode{
		Scope: scope.Scope{Project: "p", User: "ana", Session: session}, Role: events.RoleUser, Content: text,
		Metadata: map[string]any{metaSpeaker: speaker}, Timestamp: day,
	}
}

func conversation(turns ...memory.Episode) said {
	for i := range turns {
		turns[i].Ordinal, turns[i].ID = uint64(i+1), fmt.Sprint(i+1)
	}
	return turns
}

// countsOf counts the terms of texts.
func countsOf(texts []string) store.TextCounts {
	c := store.TextCounts{Documents: uint64(len(texts)), Holding: map[string]uint64{}}
	for _, text := range texts {
		terms := lex.Terms(text)
		c.Terms += uint64(len(terms))
		slices.Sort(terms)
		for _, term := range slices.Compact(terms) {
			c.Holding[term]++
		}
	}
	return c
}

// store finds, by text, the turns that share a word with the question, and facts.
func (s said) store(question string, facts ...store.Fact) fake {
	words := lex.Terms(question)
	shares := func(text string) bool {
		return slices.ContainsFunc(lex.Terms(text), func(t string) bool { return slices.Contains(words, t) })
	}
	return fake{
		text: func(_ context.Context, _ scope.Selector, q store.SearchQuery) (hits []store.Hit, _ error) {
			var texts []string
			for i := range s {
				if q.Target == store.Episodes {
					texts = append(texts, s[i].Content)
				}
				if q.Target == store.Episodes && shares(s[i].Content) {
					hits = append(hits, store.Hit{Score: 1, Episode: &s[i]})
				}
			}
			for i := range facts {
				if q.Target == store.Facts {
					texts = append(texts, facts[i].Text)
				}
				if q.Target == store.Facts && shares(facts[i].Text) {
					hits = append(hits, store.Hit{Score: 1, Fact: &facts[i]})
				}
			}
			*q.Counts = countsOf(texts)
			return hits, nil
		},
		vector: of(),
		at: func(ordinals []uint64) (list []memory.Episode, _ error) {
			for _, n := range ordinals {
				if n <= uint64(len(s)) {
					list = append(list, s[n-1])
				}
			}
			return list, nil
		},
	}
}

func search(t *testing.T, f fake, q Query) Results {
	t.Helper()
	e, err := New(DefaultConfig(), f, embed.Only(f))
	if err != nil {
		t.Fatal(err)
	}
	q.Explain = true
	var got Results
	for range 2 { // the documents cached by the first search change nothing
		again, err := e.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if got.Hits != nil && !cmp.Equal(got, again) {
			t.Errorf("the same question has another answer: %s", cmp.Diff(got, again))
		}
		got = again
	}
	for i, h := range got.Hits {
		if h.Score <= 0 || h.Score >= 1 || i > 0 && h.Score > got.Hits[i-1].Score {
			t.Errorf("score %v at %d", h.Score, i)
		}
	}
	return got
}

// TestFeaturesRank: of two turns that match alike, the one that a feature speaks
// for comes first.
func TestFeaturesRank(t *testing.T) {
	t.Parallel()
	filler := turn("other", "Ines", "Nothing of note here.")
	for name, tc := range map[string]struct {
		question string
		turns    said
		order    [2]string // the first before the second
		feature  feature
	}{
		"the turn before": {
			"Which colour has the new canoe?",
			conversation(turn("a", "Ines", "Green is the colour."), filler, filler, turn("b", "Ines", "We carried the new canoe home."), turn("b", "Tobias", "Blue is the colour.")),
			[2]string{"5", "1"}, coverage,
		},
		"an answer": {
			"How tall is the lighthouse?",
			conversation(turn("a", "Ines", "The lighthouse is old."), turn("a", "Tobias", "Thirty metres."), filler, turn("b", "Ines", "How tall is the lighthouse?"), turn("b", "Tobias", "Thirty metres.")),
			[2]string{"5", "2"}, answering,
		},
		"a named speaker": {
			"What did Tobias plant?",
			conversation(turn("a", "Ines", "I will plant leeks."), filler, filler, turn("b", "Tobias", "I will plant leeks.")),
			[2]string{"4", "1"}, speaks,
		},
		"a name instead of a speaker": {
			"What did Tobias plant?",
			conversation(turn("a", "Ines", "I will plant leeks."), filler, filler,
				memory.Episode{Scope: filler.Scope, Role: events.RoleUser, Content: "I will plant leeks.", Metadata: map[string]any{metaName: "Tobias"}, Timestamp: day}),
			[2]string{"4", "1"}, speaks,
		},
		"a month": {
			"What did we harvest in May?",
			conversation(turn("a", "Ines", "We harvest leeks."), filler, filler, at(turn("b", "Ines", "We harvest leeks."), time.May)),
			[2]string{"4", "1"}, dated,
		},
		"a session": {
			"Which glue holds the kite?",
			conversation(turn("a", "Ines", "This glue is strong."), filler, filler, filler,
				turn("b", "Ines", "My kite."), filler, filler, filler, turn("b", "Tobias", "A red kite tail."), filler, filler, filler, turn("b", "Tobias", "This glue is strong.")),
			[2]string{"13", "1"}, sessionText,
		},
		"words together": {
			"Did the stone bridge fall?",
			conversation(turn("a", "Ines", "A bridge of grey stone."), filler, filler, turn("b", "Ines", "A grey stone bridge.")),
			[2]string{"4", "1"}, adjacent,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := search(t, tc.turns.store(tc.question), Query{Text: tc.question, Limit: 10, Episodes: true})
			first, second := slices.Index(ids(got), tc.order[0]), slices.Index(ids(got), tc.order[1])
			if first < 0 || second >= 0 && second < first {
				t.Errorf("want %s before %s: %v", tc.order[0], tc.order[1], ids(got))
			}
			if !slices.ContainsFunc(got.Hits, func(h Hit) bool { return h.Features[featureNames[tc.feature]] != 0 }) {
				t.Errorf("no hit has %s: %v", featureNames[tc.feature], got.Hits[0].Features)
			}
		})
	}
}

func at(e memory.Episode, m time.Month) memory.Episode {
	e.Timestamp = time.Date(2025, m, 3, 0, 0, 0, 0, time.UTC)
	return e
}

// TestNeighboursAreAnswers: a turn that shares no word is found beside one that
// does, in its session and within the bounds alone.
func TestNeighboursAreAnswers(t *testing.T) {
	t.Parallel()
	const question = "When does the ferry leave?"
	turns := conversation(turn("b", "Ines", "Elsewhere."), turn("a", "Ines", "When does the ferry leave?"), turn("a", "Tobias", "At nine."), turn("a", "Tobias", "Far away."))
	if got := ids(search(t, turns.store(question), Query{Text: question, Limit: 3, Episodes: true})); len(got) < 2 || !slices.Contains(got[:2], "2") || !slices.Contains(got[:2], "3") {
		t.Errorf("found %v", got)
	}
	turns[2].Timestamp = day.Add(48 * time.Hour)
	if got := ids(search(t, turns.store(question), Query{Text: question, Limit: 9, Episodes: true, Before: day.Add(time.Hour)})); slices.Contains(got, "3") {
		t.Errorf("found %v, one of which is too late", got)
	}
	broken := turns.store(question)
	broken.at = func([]uint64) ([]memory.Episode, error) { return nil, errDown }
	got := search(t, broken, Query{Text: question, Limit: 9, Episodes: true})
	if !cmp.Equal(got.Degraded, []string{contextLeg}) || !cmp.Equal(ids(got), []string{"2"}) {
		t.Errorf("without neighbours: %v, degraded %v", ids(got), got.Degraded)
	}
}

func known(id, subject, text string, sources ...string) store.Fact {
	return store.Fact{Fact: events.Fact{ID: id, Subject: subject, Text: text, SourceEpisodeIDs: sources}, Scope: scope.Scope{Project: "p", User: "ana"}}
}

// TestFactsLend their match to the turns that they come from, and the answer names
// them. A fact ranks no higher than its turn with that.
func TestFactsLend(t *testing.T) {
	t.Parallel()
	const question = "What is the job of Ines at the observatory?"
	turns := conversation(turn("a", "Ines", "I grind mirrors at the observatory."), turn("b", "Ines", "The observatory is closed."))
	fact := known("f", "Ines", "The job of Ines is mirror grinder at the observatory.", "1")
	fact.Predicate = "work"
	got := search(t, turns.store(question, fact), everything(question))
	if diff := cmp.Diff([]string{"f", "1", "2"}, ids(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !cmp.Equal(got.Hits[1].LentBy, []string{"f"}) || got.Hits[2].LentBy != nil {
		t.Errorf("lent by %v and %v", got.Hits[1].LentBy, got.Hits[2].LentBy)
	}
	if got.Hits[0].Score > got.Hits[1].Score {
		t.Errorf("the fact scores %v, its turn %v", got.Hits[0].Score, got.Hits[1].Score)
	}
}

// TestPartialFacts follow their turns: a fact that another predicate says, that has fewer
// of the question's words or no value of the kind asked for.
func TestPartialFacts(t *testing.T) {
	t.Parallel()
	turns := conversation(
		turn("a", "", "I have sold my van and drive a Skoda."), turn("b", "", "I take a small pill every night."), turn("c", "", "I have a new kayak, a Prijon."),
	)
	facts := []store.Fact{
		known("drives", "user", "The user drives a Skoda car.", "1"), known("pill", "user", "The user takes a small pill.", "2"),
		known("owns", "user", "The user owns a new kayak.", "3"),
	}
	facts[0].Predicate, facts[1].Predicate, facts[2].Predicate = "drives", "medication", "owns"
	for question, want := range map[string][]string{
		"What car do I drive?":         {"drives", "1"},
		"Which car van have I sold?":   {"1", "drives"},
		"When do I take my medicine?":  {"2", "pill"},
		"Which medicine do I take?":    {"pill", "2"},
		"What kind of kayak do I own?": {"3", "owns"},
	} {
		got := ids(search(t, turns.store(question, facts...), everything(question)))
		if diff := cmp.Diff(want, got[:min(len(got), 2)]); diff != "" {
			t.Errorf("%q (-want +got):\n%s", question, diff)
		}
	}
}

// TestSpanOfTurns: a fact about a birth does not make all turns late.
func TestSpanOfTurns(t *testing.T) {
	t.Parallel()
	early, late := turn("a", "", "I work at the mill."), at(turn("b", "", "I work at the harbour."), time.May)
	turns := conversation(early, late)
	born := known("born", "user", "The user was born at work.")
	born.EventTime = time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC)
	const question = "Where do I work now?"
	got := search(t, turns.store(question, born), Query{Text: question, Limit: 10, Facts: true, Episodes: true})
	for _, h := range got.Hits {
		if h.Episode != nil && h.Episode.ID == "1" && h.Features[featureNames[aged]] >= 0 {
			t.Errorf("the first turn counts as late: %v", h.Features)
		}
	}
	if ids(got)[0] != "2" {
		t.Errorf("found %v", ids(got))
	}
}

// TestChangedFacts count for the turn that changed them, not for earlier ones, and what is
// true now is not old.
func TestChangedFacts(t *testing.T) {
	t.Parallel()
	turns := conversation(
		turn("a", "", "I live in a flat in Braga."), turn("b", "", "My flat is on Cotham Hill."), at(turn("c", "", "Where I live now it rains."), time.May),
	)
	home := known("home", "user", "The user lives on Cotham Hill.", "1", "2")
	home.Predicate, home.Supersedes = "lives_in", []string{"home@1"}
	for question, want := range map[string]string{"Where do I live?": "home", "Where do I live now?": "home", "Where did I live before?": "1"} {
		got := search(t, turns.store(question, home), everything(question))
		if ids(got)[0] != want {
			t.Errorf("%q: found %v, want %s first", question, ids(got), want)
		}
		for _, h := range got.Hits {
			if h.Episode != nil && h.Episode.ID == "1" && h.LentBy != nil && want == "home" {
				t.Errorf("%q: the changed fact counts for the turn before the change", question)
			}
		}
	}
}

// TestFactsOfTheAsker come before those of others in answer to a question about
// the asker.
func TestFactsOfTheAsker(t *testing.T) {
	t.Parallel()
	facts := []store.Fact{known("other", "Piotr", "Piotr lives in Osaka."), known("mine", "user", "The user lives in Ghent.")}
	for question, want := range map[string]string{"Where do I live?": "mine", "Где я live?": "mine", "Where does Piotr live?": "other"} {
		if got := ids(search(t, said{}.store(question, facts...), everything(question))); got[0] != want {
			t.Errorf("%q: found %v", question, got)
		}
	}
}

// TestTurnsOfTheAsker: a turn counts as one about the subject of its fact that
// matches the question best.
func TestTurnsOfTheAsker(t *testing.T) {
	t.Parallel()
	turns := conversation(turn("a", "", "My sister Ada lives in Porto."), turn("b", "", "I moved to Ghent."))
	facts := []store.Fact{
		known("sister", "user", "The user has a sister named Ada.", "1"), known("other", "Ada", "Ada lives in Porto.", "1"),
		known("mine", "user", "The user lives in Ghent.", "2"),
	}
	facts[1].Predicate, facts[2].Predicate = "lives_in", "lives_in"
	for question, want := range map[string]string{"Where do I live?": "mine", "Where does Ada live?": "other"} {
		if got := ids(search(t, turns.store(question, facts...), everything(question))); got[0] != want {
			t.Errorf("%q: found %v, want %s first", question, got, want)
		}
	}
}

// TestLegsWithoutWeightSayNothing about the order.
func TestLegsWithoutWeightSayNothing(t *testing.T) {
	t.Parallel()
	v := values{ownText: 1, ownVector: 1, speaks: 1}
	all, text := v.score(Config{Text: 1, Vector: 1}), v.score(Config{Text: 1})
	if want := weights[ownVector]; all-text < want-1e-9 || all-text > want+1e-9 {
		t.Errorf("the vector leg adds %v, want %v", all-text, want)
	}
	if got := slices.Sorted(maps.Keys(v.explain(Config{Text: 1}))); !cmp.Equal(got, []string{"speaker", "text"}) {
		t.Errorf("features %v", got)
	}
}

// TestSpeakersAreNotEmbedded: a semantic embedder sees the question without the
// names of who speaks, whole where nothing else is left or text fails.
func TestSpeakersAreNotEmbedded(t *testing.T) {
	t.Parallel()
	turns := conversation(turn("a", "Tobias Klein", "Tobias rows a boat."), turn("a", "Ines", "A boat."))
	for question, want := range map[string]string{
		"What did Tobias's boat cost Anna?": "What did boat cost Anna?",
		"Tobias":                            "Tobias",
		"Which boat?":                       "Which boat?",
	} {
		f := turns.store(question)
		f.embedded = make(chan string, 2)
		search(t, f, Query{Text: question, Limit: 3, Episodes: true})
		if got := <-f.embedded; got != want {
			t.Errorf("%q is embedded as %q, want %q", question, got, want)
		}
	}
	f := turns.store("Tobias's boat")
	f.text, f.embedded = failing, make(chan string, 1)
	if got, err := engine(t, f, nil).Search(t.Context(), everything("Tobias's boat")); err != nil || <-f.embedded != "Tobias's boat" {
		t.Errorf("%+v, %v", got, err)
	}
}
