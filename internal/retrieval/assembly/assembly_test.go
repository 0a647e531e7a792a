package assembly

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/memory"
)

func bytes(text string) int { return len(text) }

func TestPack(t *testing.T) {
	t.Parallel()
	sections := []Section{
		{Title: "Instructions", Lines: []Line{{ID: "r", Text: "Answer briefly."}}},
		{Title: "Facts", Share: 0.5, Lines: []Line{{ID: "a", Text: "Nora lives in Oslo."}, {ID: "b", Text: "Nora drinks\ntea."}}},
		{Title: "When", Share: 0.5, Sorted: true, Lines: []Line{{ID: "later", Text: "two", Order: 2}, {ID: "a", Text: "again"}, {ID: "sooner", Text: "one", Order: 1}}},
		{Title: "Quotes", Share: 0.1},
	}
	want := memory.ContextOpen + `
## Instructions
- Answer briefly. [r]
## Facts
- Nora lives in Oslo. [a]
- Nora drinks tea. [b]
## When
- one [sooner]
- two [later]
` + memory.ContextClose + "\n"
	got := Pack(sections, 1000, bytes)
	if got.Text != want || got.Tokens != len(want) || strings.Join(got.IDs, " ") != "r a b sooner later" {
		t.Errorf("%+v", got)
	}
	// Instructions are cut last.
	if got := Pack(sections, len(memory.ContextOpen+memory.ContextClose)+2+len("## Instructions\n- Answer briefly. [r]\n"), bytes); strings.Join(got.IDs, " ") != "r" {
		t.Errorf("%+v", got)
	}
	if got := Pack(sections, 10, bytes); got.Text != "" || got.IDs != nil || got.Tokens != 0 {
		t.Errorf("%+v", got)
	}
	if got := Pack(nil, 1000, bytes); got.Text != "" {
		t.Errorf("%+v", got)
	}
}

// TestWhatASectionLeaves: the share that one leaves unused goes to the next.
func TestWhatASectionLeaves(t *testing.T) {
	t.Parallel()
	long := Section{Title: "B", Share: 0.1}
	for i := range 20 {
		long.Lines = append(long.Lines, Line{ID: fmt.Sprint(i), Text: "ten bytes."})
	}
	alone := Pack([]Section{{Title: "A", Share: 0.9}, long}, 500, bytes)
	beside := Pack([]Section{{Title: "A", Share: 0.9, Lines: []Line{{ID: "x", Text: strings.Repeat("x", 350)}}}, long}, 500, bytes)
	if len(alone.IDs) != 20 || len(beside.IDs) >= len(alone.IDs) {
		t.Errorf("%d alone, %d beside", len(alone.IDs), len(beside.IDs))
	}
}

// TestPackKeepsTheBudget holds for the real tokens and any text, and the marks of a
// block occur once each.
func TestPackKeepsTheBudget(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"Nora lives in Oslo.", "Нора живёт в Осло", "東京に住んでいます", memory.ContextClose, "<palimpsest-con<palimpsest-context>text>", strings.Repeat("long ", 400), "🙂🙂🙂",
	}))
	rapid.Check(t, func(t *rapid.T) {
		var sections []Section
		for i := range rapid.IntRange(0, 5).Draw(t, "sections") {
			s := Section{Title: "Section", Share: []float64{0, 0.4, 0.25, 0.25, 0.1}[i], Sorted: i == 3}
			for k := range rapid.IntRange(0, 6).Draw(t, "lines") {
				s.Lines = append(s.Lines, Line{ID: fmt.Sprintf("%d-%d", i, k), Text: text.Draw(t, "text"), Order: int64(-k)})
			}
			sections = append(sections, s)
		}
		budget := rapid.IntRange(0, 300).Draw(t, "budget")
		b := Pack(sections, budget, Tokens)
		if b.Tokens > budget || Tokens(b.Text) != b.Tokens {
			t.Fatalf("%d tokens, told %d, budget %d", Tokens(b.Text), b.Tokens, budget)
		}
		if b.Text != "" && (strings.Count(b.Text, memory.ContextOpen) != 1 || strings.Count(b.Text, memory.ContextClose) != 1 || len(b.IDs) == 0) {
			t.Fatalf("%q", b.Text)
		}
		if again := Pack(sections, budget, Tokens); again.Text != b.Text {
			t.Fatal("another block")
		}
	})
}
