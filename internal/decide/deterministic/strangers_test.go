package deterministic_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"palimpsest/internal/extract/rulepack"
	"palimpsest/pkg/events"
)

// strangers is what people say whose values change, each in their own words.
type strangers struct {
	Items []change `yaml:"items"`
	Noise []string `yaml:"noise"`
}

// change is a value that changes in the course of a chat.
type change struct {
	Topic string   `yaml:"topic"`
	Say   []string `yaml:"say"` // the turns; " | " joins those that follow each other
	New   string   `yaml:"new"` // part of the object of the fact that holds in the end
	Old   []string `yaml:"old"` // parts of the objects of the facts that must be closed
	Not   []string `yaml:"not"` // values that must not come to hold
}

// chatOfChanges writes a chat that holds each change among noise.
func chatOfChanges(s strangers, noise []string, seed uint64) []string {
	r := rand.New(rand.NewPCG(seed, 11))
	turns := make([]string, chatTurns)
	blocks := r.Perm(chatTurns / chatBlock)
	for _, c := range s.Items {
		at := slices.Clone(blocks[:len(c.Say)])
		blocks = blocks[len(c.Say):]
		slices.Sort(at)
		for i, says := range c.Say {
			for j, part := range strings.Split(says, " | ") {
				turns[at[i]*chatBlock+j] = part
			}
		}
	}
	for i := range turns {
		if turns[i] == "" {
			turns[i] = noise[r.IntN(len(noise))]
		}
	}
	return turns
}

const (
	chatBlock      = 5 // turns
	strangersChats = 5 // of each file
)

// TestStrangersChats holds that the newest value is the current fact, and those
// before it are closed, in the words of people who had not read the patterns.
func TestStrangersChats(t *testing.T) {
	t.Parallel()
	var phrases chatPhrases
	decodeFile(t, "testdata/chats.yaml", &phrases)
	x, err := rulepack.New()
	if err != nil {
		t.Fatal(err)
	}
	noise := slices.DeleteFunc(slices.Clone(phrases.Noise), func(s string) bool {
		return strings.Contains(s, "{") || strings.Contains(s, "favourite colour") // a topic of these chats
	})
	for _, c := range []struct {
		batch string
		share float64
	}{{"a", 0.8}, {"b", 0.75}, {"c", 0.75}, {"d", 0.7}, {"e", 0.7}} {
		t.Run(c.batch, func(t *testing.T) {
			t.Parallel()
			var s strangers
			decodeFile(t, "testdata/strangers_"+c.batch+".yaml", &s)
			right, all, wrong := 0, 0, map[string]int{}
			for chat := range uint64(strangersChats) {
				known := remembered(t, x, chatOfChanges(s, slices.Concat(noise, s.Noise, s.Noise), chat))
				for _, c := range s.Items {
					all++
					if w := c.check(known); w != "" {
						wrong[c.Topic+": "+w]++
						continue
					}
					right++
				}
			}
			for w, n := range wrong {
				t.Logf("%d times %s", n, w)
			}
			t.Logf("right: %d of %d", right, all)
			if float64(right) < c.share*float64(all) {
				t.Errorf("%d of %d newest values are current and the others closed, want %.0f %%", right, all, 100*c.share)
			}
		})
	}
}

// TestChanges holds the same of each change by itself, in English and in Russian.
func TestChanges(t *testing.T) {
	t.Parallel()
	x, err := rulepack.New()
	if err != nil {
		t.Fatal(err)
	}
	for language, share := range map[string]float64{"en": 0.7, "ru": 0.85} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			var s strangers
			decodeFile(t, "testdata/changes_"+language+".yaml", &s)
			right := 0
			for _, c := range s.Items {
				w := c.check(remembered(t, x, c.Say))
				if w != "" {
					t.Logf("%s: %s", c.Topic, w)
					continue
				}
				right++
			}
			t.Logf("right: %d of %d", right, len(s.Items))
			if float64(right) < share*float64(len(s.Items)) {
				t.Errorf("%d of %d newest values are current and the others closed, want %.0f %%", right, len(s.Items), 100*share)
			}
		})
	}
}

// pastPredicates are predicates of facts about what was, which a later value leaves true.
var pastPredicates = []string{"did", "quit", "worked", "lived_in", "studied", "owned"}

// check describes an error in the known facts of a topic; empty means none.
func (c change) check(known []events.Fact) string {
	about := func(f events.Fact, value string) bool {
		return strings.Contains(strings.ToLower(f.Object), strings.ToLower(value))
	}
	slots := map[string]bool{}
	for _, f := range known {
		if about(f, c.New) && !slices.Contains(pastPredicates, f.Predicate) {
			slots[f.Subject+" "+f.Predicate] = true
		}
	}
	if len(slots) == 0 {
		return fmt.Sprintf("%q is not known", c.New)
	}
	for _, f := range known {
		for _, old := range c.Old {
			if about(f, old) && !about(f, c.New) && !slices.Contains(pastPredicates, f.Predicate) {
				return fmt.Sprintf("%q is still known by %s (%s)", old, f.RuleID, f.Text)
			}
		}
		for _, not := range c.Not {
			if about(f, not) && slots[f.Subject+" "+f.Predicate] {
				return fmt.Sprintf("%q is known by %s (%s)", not, f.RuleID, f.Text)
			}
		}
	}
	return ""
}

func decodeFile(t *testing.T, path string, into any) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(src, into); err != nil {
		t.Fatal(err)
	}
}

// TestNothingMoves holds that plans, questions, suppositions, idioms and the changes of
// others leave the user's facts alone.
func TestNothingMoves(t *testing.T) {
	t.Parallel()
	x, err := rulepack.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{
		"I might swap the Corsa for a Skoda", "thinking of moving from Oslo to Bergen", "my friend swapped his Corsa for a Golf",
		"if I swapped the Corsa for a bike I'd save money", "should I swap the Corsa for a Skoda?", "Anna moved from Oslo to Bergen",
		"he said I swapped the Corsa for a Fiat", "My sister left Oslo, she is in Paris now", "we went from laughing to crying",
		"I'd trade my left arm for a coffee right now", "My parents moved from Oslo to Rome", "We almost moved from Oslo to Lyon.",
		`Translate this: "I moved from Oslo to Rome"`, "Imagine I traded the Corsa for a boat.", "replace the Corsa with a Golf in this list",
	} {
		texts := map[string]bool{}
		for _, f := range remembered(t, x, []string{"I drive a Corsa.", "I live in Oslo.", says}) {
			texts[f.Text] = true
		}
		if !texts["The user drives a Corsa."] || !texts["The user lives in Oslo."] {
			t.Errorf("after %q: %v", says, texts)
		}
	}
}

// TestEnds holds that an end without a new value closes the fact of any attribute.
func TestEnds(t *testing.T) {
	t.Parallel()
	x, err := rulepack.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ known, end string }{
		{"I play the cello.", "Sold my cello last week."},
		{"I take sertraline, 50 mg.", "The doctor took me off sertraline altogether."},
		{"I sing in the Bach choir.", "I quit the Bach choir after a row."},
		{"I have a tortoise named Speedy.", "Speedy passed away last night."},
		{"I wear contact lenses.", "I can see without them, so bye bye contact lenses."},
		{"We're going to Malta in May.", "Malta came to nothing."},
		{"My physio is Kurt.", "Kurt's discharged me, finally."},
		{"My laptop is a Dell.", "My laptop ended up in the bin."},
		{"I drive a Golf.", "I got rid of the car."},
	} {
		of := map[string]bool{}
		for _, f := range remembered(t, x, []string{c.known}) {
			of[f.Text] = true
		}
		if len(of) == 0 {
			t.Errorf("%q is not understood", c.known)
		}
		for _, f := range remembered(t, x, []string{c.known, c.end}) {
			if of[f.Text] {
				t.Errorf("%q leaves %q", c.end, f.Text)
			}
		}
	}
}

// nothingEnds is what a user is known by, and what ends none of it.
type nothingEnds struct {
	Known   []string            `yaml:"known"`
	Classes map[string][]string `yaml:"classes"`
}

// TestNothingEnds checks that statements about code, a text, a game or one day, and those
// that only look like a change, leave every fact of the user as it is.
func TestNothingEnds(t *testing.T) {
	t.Parallel()
	x, err := rulepack.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"testdata/nothing_ends_a.yaml", "testdata/nothing_ends_b.yaml", "testdata/nothing_ends_c.yaml", "testdata/nothing_ends_ru.yaml"} {
		var set nothingEnds
		decodeFile(t, file, &set)
		before := remembered(t, x, set.Known)
		if len(before) < len(set.Known) {
			t.Errorf("%s: %d facts of %d statements", file, len(before), len(set.Known))
		}
		for class, sentences := range set.Classes {
			t.Run(class, func(t *testing.T) {
				t.Parallel()
				for _, says := range sentences {
					after := remembered(t, x, slices.Concat(set.Known, strings.Split(says, " | ")))
					for _, f := range before {
						if !slices.ContainsFunc(after, func(g events.Fact) bool { return g.Text == f.Text }) {
							t.Errorf("%q ends %q", says, f.Text)
						}
					}
				}
			})
		}
	}
}
