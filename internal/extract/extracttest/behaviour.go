package extracttest

import (
	"strings"
	"testing"

	"palimpsest/internal/extract"
	"palimpsest/pkg/events"
)

// said is one row of the table of behaviour: the last lines of a conversation, and
// the candidates that must and must not be extracted from them.
type said struct {
	name  string
	lines []string
	want  []expected
	none  bool // nothing at all
}

// expected is a candidate as far as every extractor must agree; Object and Text
// are words that must be in them.
type expected struct {
	subject, predicate, object string
	negated                    bool
	ends                       string // predicate of a triple that it retracts
}

var table = []said{
	{name: "name", lines: []string{"My name is Bo"}, want: []expected{{subject: "user", predicate: "name", object: "Bo"}}},
	{name: "introduction", lines: []string{
		"Hello, Nora here. I'm a hydrologist at Fenwick Labs.", "assistant: What do you study there?",
		"River ice and sediment. For plotting I'd take Julia over Matlab.",
	}, want: []expected{
		{subject: "user", predicate: "name", object: "Nora"},
		{subject: "user", predicate: "work", object: "hydrologist at Fenwick Labs"},
		{subject: "user", predicate: "studies", object: "River ice and sediment"},
		{subject: "user", predicate: "prefers", object: "Julia over Matlab"},
	}},
	{name: "greeting", lines: []string{"hello"}, none: true},
	{name: "preference", lines: []string{"I like Python"}, want: []expected{{subject: "user", predicate: "likes", object: "Python"}}},
	{name: "home", lines: []string{"I live in Oslo"}, want: []expected{{subject: "user", predicate: "lives_in", object: "Oslo"}}},
	{name: "move", lines: []string{"I moved to Bergen last week"}, want: []expected{{subject: "user", predicate: "lives_in", object: "Bergen"}}},
	{name: "field", lines: []string{"I work in tech"}, want: []expected{{subject: "user", predicate: "work", object: "tech"}}},
	{name: "refined work", lines: []string{"I work at Fenwick as a senior engineer"}, want: []expected{
		{subject: "user", predicate: "work", object: "as a senior engineer at Fenwick"},
	}},
	{name: "new employer", lines: []string{"I've left Fenwick, I'm with Tarn Institute now."}, want: []expected{
		{subject: "user", predicate: "work", object: "at Tarn Institute", ends: "work"},
	}},
	{name: "diet", lines: []string{"I'm vegetarian"}, want: []expected{{subject: "user", predicate: "diet", object: "vegetarian"}}},
	{name: "diet ends", lines: []string{"I started eating meat again"}, want: []expected{
		{subject: "user", predicate: "diet", object: "meat", ends: "diet"},
	}},
	{name: "question", lines: []string{"Do you think I should move to Berlin?"}, none: true},
	{name: "somebody else", lines: []string{"My brother Tom hates cilantro"}, want: []expected{
		{subject: "user", predicate: "has_brother", object: "Tom"}, {subject: "Tom", predicate: "dislikes", object: "cilantro"},
	}},
	{name: "phone", lines: []string{"my phone ends in 41"}, want: []expected{{subject: "user", predicate: "phone", object: "41"}}},
	{name: "new phone", lines: []string{"my new number ends in 42"}, want: []expected{{subject: "user", predicate: "phone", object: "42"}}},
	{name: "no punctuation", lines: []string{"hi im bo, i live in oslo"}, want: []expected{
		{subject: "user", predicate: "name", object: "Bo"}, {subject: "user", predicate: "lives_in", object: "Oslo"},
	}},
	{name: "denial", lines: []string{"I no longer live in Oslo"}, want: []expected{
		{subject: "user", predicate: "lives_in", object: "Oslo", negated: true},
	}},
	{name: "answer", lines: []string{"assistant: Nice to meet you. What do you do?", "hydrologist at Fenwick Labs"}, want: []expected{
		{subject: "user", predicate: "work", object: "hydrologist at Fenwick Labs"},
	}},
}

func behaviour(t *testing.T, x extract.Extractor, opts Options) {
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			got := extracted(t, x, Talk(row.lines...), nil)
			if row.none && len(got) > 0 || !row.none && len(got) != len(row.want) {
				t.Errorf("%q gives %d candidates, want %d: %+v", row.lines, len(got), len(row.want), got)
			}
			for _, w := range row.want {
				if opts.Decided != "" {
					w.ends = ""
				}
				if !w.in(got) {
					t.Errorf("%q gives no %+v: %+v", row.lines, w, got)
				}
			}
		})
	}
}

func (w expected) in(got []events.Candidate) bool {
	for _, c := range got {
		if c.Subject != w.subject || c.Predicate != w.predicate || !strings.Contains(c.Object, w.object) || c.Negated != w.negated {
			continue
		}
		if w.ends == "" {
			return true
		}
		for _, r := range c.Retracts {
			if r.Predicate == w.ends {
				return true
			}
		}
	}
	return false
}
