package rulepack

import (
	"errors"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/eval"
	"palimpsest/internal/extract/rulepack/grammar"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

const tinyPack = `
id: tiny
version: "9"
language: en
script: Latin
rules:
  - id: craft.weaves
    category: skill
    predicate: weaves
    text: "{S} weaves {o}."
    patterns: ["i weave {o}"]
`

func TestUserPackAddsAndOverrides(t *testing.T) {
	t.Parallel()
	p, err := Parse("tiny.yaml", []byte(tinyPack))
	if err != nil {
		t.Fatal(err)
	}
	x, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(x.Name(), "+9") {
		t.Errorf("name %q does not tell the added pack", x.Name())
	}
	got := extracted(t, x, userSays("1", "I weave carpets. I like tea."))
	if len(got) != 2 || got[0].Predicate != "weaves" || got[1].Predicate != "likes" {
		t.Errorf("got %+v", got)
	}
}

func TestPackErrorsNamePackPatternAndField(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, pattern, field string }{
		{`version: "9"`, "", "", "version"},
		{"script: Latin", "script: Klingon", "", "script"},
		{"i weave {o}", "i weave {x}", "craft.weaves", "patterns"},
		{"i weave {o}", "i weave (a|b {o}", "craft.weaves", "patterns"},
		{"i weave {o}", "i weave {o:@nothing}", "craft.weaves", "patterns"},
		{"category: skill", "kind: hunch\n    category: skill", "craft.weaves", "kind"},
		{"category: skill", "", "craft.weaves", "category"},
		{"category: skill", "colour: red", "", "yaml"},
		{"category: skill", "category: skill\n    confidence: 2", "craft.weaves", "confidence"},
	} {
		p, err := Parse("tiny", []byte(strings.Replace(tinyPack, c.from, c.to, 1)))
		if err == nil {
			p.Lexicon = grammar.Lexicon{Speaker: []string{"i"}, Own: []string{"my"}, Subject: "U", Possessive: "U's"}
			_, err = Load(p)
		}
		var pe *PackError
		if !errors.As(err, &pe) || pe.Pack != "tiny" || pe.Pattern != c.pattern || pe.Field != c.field {
			t.Errorf("%q for %q: %v, want pattern %q, field %q", c.to, c.from, err, c.pattern, c.field)
		}
	}
}

func TestRelativeDates(t *testing.T) {
	t.Parallel()
	lx := shippedExtractor(t).languages[0].lx
	for _, c := range []struct{ text, tense, want string }{
		{"yesterday", "past", "2026-11-19"},
		{"last week", "past", "2026-11-13"},
		{"next friday", "future", "2026-11-27"},
		{"on monday", "past", "2026-11-16"},
		{"in march", "past", "2026-03-01"},
		{"in march", "future", "2027-03-01"},
		{"three days ago", "past", "2026-11-17"},
		{"in two weeks", "future", "2026-12-04"},
		{"march 5 2024", "past", "2024-03-05"},
		{"since 2019", "past", "2019-01-01"},
		{"2025-02-03", "past", "2025-02-03"},
	} {
		got, ok := lx.When(lx.Tokenize(c.text), noon, c.tense)
		if !ok || got.At.Format(time.DateOnly) != c.want {
			t.Errorf("%s (%s): %v, %v, want %s", c.text, c.tense, got.At, ok, c.want)
		}
	}
}

func TestDatesCountInTheZoneOfTheEpisode(t *testing.T) {
	t.Parallel()
	x := shippedExtractor(t)
	e := userSays("1", "I moved to Bergen yesterday")
	e.Timestamp = time.Date(2026, 11, 20, 23, 0, 0, 0, time.UTC)
	e.Metadata = map[string]any{events.MetaTimezone: "+05:00"}
	got := extracted(t, x, e)
	want := time.Date(2026, 11, 19, 19, 0, 0, 0, time.UTC) // midnight of the 20th there
	if len(got) != 1 || got[0].ValidFrom == nil || !got[0].ValidFrom.Equal(want) {
		t.Errorf("got %+v, want valid from %v", got, want)
	}
}

// TestLongInput holds that a text of the largest size, however odd, is read in
// time that grows with its length.
func TestLongInput(t *testing.T) {
	t.Parallel()
	x := shippedExtractor(t)
	for _, unit := range []string{"\"", "```", "i like ", ", ", "my ", "if "} {
		extracted(t, x, userSays("1", strings.Repeat(unit, 32<<10/len(unit))))
	}
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{"I live in Oslo", "my sister Anna's dog, \"Rex\"", "i'm i'm i'm", "我住在北京", "Меня зовут Аня", "C++ & a@b.c\n> x", "is 's"} {
		f.Add(s)
	}
	x := shippedExtractor(f)
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range extracted(t, x, userSays("1", s)) {
			if c.EvidenceQuote == "" || !strings.Contains(s, c.EvidenceQuote) {
				t.Errorf("%q: evidence %q", s, c.EvidenceQuote)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(tinyPack))
	f.Fuzz(func(_ *testing.T, src []byte) {
		if p, err := Parse("fuzz", src); err == nil {
			_, _ = New(p)
		}
	})
}

func BenchmarkExtract(b *testing.B) {
	x := shippedExtractor(b)
	e := userSays("1", "hi im bo, i live in oslo and i work at Fenwick as a senior engineer")
	for b.Loop() {
		extracted(b, x, e)
	}
}

// TestHealthIsSensitive checks that statements on health are sensitive under every
// pattern, and explicit, so that the write policy commits them.
func TestHealthIsSensitive(t *testing.T) {
	t.Parallel()
	x := shippedExtractor(t)
	for _, s := range []string{
		"I'm allergic to penicillin", "I take fluoxetine daily", "I had an abortion", "I see a therapist every week",
		"I started therapy in March", "I quit taking antidepressants", "У меня аллергия на пенициллин", "Я хожу к психологу",
	} {
		got := extracted(t, x, userSays("1", s))
		if len(got) != 1 || got[0].Sensitivity != events.SensitivitySensitive || !got[0].Explicit {
			t.Errorf("%q gives %+v, want one explicit sensitive candidate", s, got)
		}
	}
}

// TestCorrections holds that a correction reads the newest turn that has the old
// value again, and ends that value.
func TestCorrections(t *testing.T) {
	t.Parallel()
	x := shippedExtractor(t)
	asked := userSays("0", "So you live in Berlin?")
	asked.Role = events.RoleAssistant
	for _, c := range []struct {
		said   string
		before []memory.Episode
		want   events.Triple
		ends   int
	}{
		{"No, Leipzig.", []memory.Episode{asked}, events.Triple{Subject: "user", Predicate: "lives_in", Object: "Leipzig"}, 0},
		{"I meant Malaga, not Madrid.", []memory.Episode{userSays("0", "I like Madrid")}, events.Triple{Subject: "user", Predicate: "likes", Object: "Malaga"}, 1},
		{"I like Malta, no wait, I meant Malaga.", nil, events.Triple{Subject: "user", Predicate: "likes", Object: "Malaga"}, 0},
	} {
		got := extracted(t, x, userSays("1", c.said), c.before...)
		if len(got) != 1 || (events.Triple{Subject: got[0].Subject, Predicate: got[0].Predicate, Object: got[0].Object}) != c.want || len(got[0].Retracts) != c.ends {
			t.Errorf("%q gives %+v, want %v that ends %d", c.said, got, c.want, c.ends)
		}
	}
}

// BenchmarkCorpus reads the English corpus; one operation is one utterance.
func BenchmarkCorpus(b *testing.B) {
	x := shippedExtractor(b)
	set, err := eval.LoadUtterances("testdata/corpus_en.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		extracted(b, x, userSays("1", set[i%len(set)].Text))
	}
}

// TestLanguageOfAText holds that one pack reads a text, by its frequent words or those
// of the turn before.
func TestLanguageOfAText(t *testing.T) {
	t.Parallel()
	x := shippedExtractor(t)
	for _, c := range []struct{ text, before, want string }{
		{"I live in Oslo and I like it", "", "en"},
		{"Ich wohne in Graz", "", "de"},
		{"J'habite à Lyon", "", "fr"},
		{"Vivo en Quito con mi madre", "", "es"},
		{"Vivo a Lecce con mia madre", "", "it"},
		{"Moro em Braga com minha mãe", "", "pt"},
		{"Меня зовут Аня", "", "ru"},
		{"Oslo", "", "en"},
		{"Graz", "Ich wohne nicht in Wien", "de"},
	} {
		var before []memory.Episode
		if c.before != "" {
			before = append(before, userSays("0", c.before))
		}
		got := x.reading(c.text, before)
		if len(got) != 1 || got[0].name != c.want {
			t.Errorf("%q after %q is read by %d packs, want %s alone", c.text, c.before, len(got), c.want)
		}
	}
}
