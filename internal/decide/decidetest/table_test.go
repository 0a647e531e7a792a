package decidetest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/decide/decidetest"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/internal/extract"
	"palimpsest/internal/extract/rulepack"
	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// talk is a conversation on its way from words to facts: rule pack, write
// policy, decider, plan.
type talk struct {
	*decidetest.Memory
	t         *testing.T
	extractor extract.Extractor
	decider   decide.Decider
	said      []memory.Episode
}

// packs are read once: they take longer than the talks.
var packs = sync.OnceValues(func() (*rulepack.Extractor, error) { return rulepack.New() })

var speaker = scope.Scope{Project: "default", User: "nora", Session: "s1"}

func newTalk(t *testing.T) *talk {
	t.Helper()
	x, err := packs()
	if err != nil {
		t.Fatal(err)
	}
	return &talk{Memory: decidetest.NewMemory(speaker.Fact()), t: t, extractor: x, decider: deterministic.New()}
}

func (k *talk) now() time.Time {
	return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).AddDate(0, 0, len(k.said))
}

// turn is one message, one day after the one before, and its consolidation. It
// returns the kinds of the deltas.
func (k *talk) turn(role events.Role, content string) []string {
	k.t.Helper()
	n := uint64(len(k.said) + 1)
	e := memory.Episode{
		ID: fmt.Sprintf("e%d", n), Scope: speaker, Role: role, Content: content, Timestamp: k.now(), ArrivedAt: k.now(), Ordinal: n, Seq: n,
	}
	before := k.said[max(0, len(k.said)-extract.ContextTurns):]
	k.said = append(k.said, e)
	return k.consolidate([]memory.Episode{e}, before)
}

func (k *talk) consolidate(episodes, before []memory.Episode) []string {
	k.t.Helper()
	ctx := context.Background()
	candidates, err := k.extractor.Extract(ctx, episodes, extract.Context{Scope: speaker.Fact(), Rule: memory.RuleTurn, Before: before})
	if err != nil {
		k.t.Fatal(err)
	}
	policy := decide.NewPolicy(nil)
	passed := slices.DeleteFunc(slices.Clone(candidates), func(c events.Candidate) bool {
		return policy.Judge(c, rules.Shipped()[0]).Action != decide.Commit
	})
	d, err := k.decider.Decide(ctx, passed, decide.Known{
		Scope: speaker.Fact(), At: k.now(), Cause: fmt.Sprintf("m%d-%d", len(k.said), len(episodes)), Lookup: k.Memory,
	})
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.Apply(d, passed, k.now()); err != nil {
		k.t.Fatal(err)
	}
	kinds := []string{}
	for _, delta := range d.Deltas {
		kinds = append(kinds, string(delta.Kind()))
	}
	return kinds
}

// texts are those of the valid facts.
func (k *talk) texts() []string {
	var out []string
	for _, f := range k.ValidAt(k.now()) {
		out = append(out, f.Text)
	}
	return out
}

func (k *talk) holds(words ...string) bool {
	return slices.ContainsFunc(k.texts(), func(text string) bool {
		return !slices.ContainsFunc(words, func(w string) bool {
			return !strings.Contains(strings.ToLower(text), strings.ToLower(w))
		})
	})
}

// TestTable checks the facts that are known after statements that users type.
func TestTable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		known []string // said before, by the user
		turns []string // "assistant: …" or the user's words
		last  []string // kinds of the last turn's deltas; nil for any
		holds [][]string
		not   [][]string
	}{
		{"name", nil, []string{"My name is Bo"}, []string{"add"}, [][]string{{"name", "Bo"}}, nil},
		{"conversation", nil, []string{
			"Hello, Nora here. I'm a hydrologist at Fenwick Labs.", "assistant: What do you study there?",
			"River ice and sediment. For plotting I'd take Julia over Matlab.",
		}, nil, [][]string{{"Nora"}, {"hydrologist", "Fenwick Labs"}, {"river ice"}, {"Julia", "Matlab"}}, nil},
		{"greeting", nil, []string{"hello"}, []string{}, nil, nil},
		{"said again", []string{"I like Python"}, []string{"I like Python"}, []string{"noop"}, [][]string{{"likes Python"}}, nil},
		{"moved", []string{"I live in Oslo"}, []string{"I moved to Bergen last week"}, nil, [][]string{{"lives in Bergen"}}, [][]string{{"lives in Oslo"}}},
		{"work refined", []string{"I work in tech"}, []string{"I work at Fenwick as a senior engineer"}, []string{"update"},
			[][]string{{"senior engineer", "Fenwick"}}, nil},
		{"employer left", []string{"I'm a hydrologist at Fenwick Labs"}, []string{"I've left Fenwick, I'm with Tarn Institute now."}, []string{"update"},
			[][]string{{"hydrologist", "Tarn Institute"}}, [][]string{{"Fenwick"}}},
		{"meat again", []string{"I'm vegetarian"}, []string{"I started eating meat again"}, nil, nil, [][]string{{"vegetarian"}}},
		{"question", nil, []string{"Do you think I should move to Berlin?"}, []string{}, nil, [][]string{{"Berlin"}}},
		{"brother", nil, []string{"My brother Tom hates cilantro"}, nil, [][]string{{"Tom", "cilantro"}}, [][]string{{"The user dislikes"}, {"The user hates"}}},
		{"new number", []string{"My phone number ends in 41"}, []string{"my new number ends in 42"}, []string{"update"}, [][]string{{"42"}}, [][]string{{"41"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t)
			for _, s := range tt.known {
				if got := k.turn(events.RoleUser, s); !slices.Contains(got, "add") {
					t.Fatalf("%q gives %v, want an add", s, got)
				}
			}
			var last []string
			for _, s := range tt.turns {
				role, content := events.RoleUser, s
				if rest, ok := strings.CutPrefix(s, "assistant: "); ok {
					role, content = events.RoleAssistant, rest
				}
				last = k.turn(role, content)
			}
			if tt.last != nil && !slices.Equal(last, tt.last) {
				t.Errorf("last turn gives %v, want %v", last, tt.last)
			}
			for _, words := range tt.holds {
				if !k.holds(words...) {
					t.Errorf("no valid fact holds %q: %q", words, k.texts())
				}
			}
			for _, words := range tt.not {
				if k.holds(words...) {
					t.Errorf("a valid fact holds %q: %q", words, k.texts())
				}
			}
			for i, kind := range k.consolidate(k.said, nil) {
				if kind != "noop" {
					t.Errorf("read again as one batch, delta %d is %s: %q", i, kind, k.texts())
				}
			}
		})
	}
}
