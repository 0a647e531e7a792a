package deterministic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// chatPhrases are what the simulated users say.
type chatPhrases struct {
	Topics []topic  `yaml:"topics"`
	Noise  []string `yaml:"noise"`
}

// topic is a value that changes in the course of a chat.
type topic struct {
	Name       string   `yaml:"name"`
	Predicates []string `yaml:"predicates"`
	Values     []string `yaml:"values"`
	First      []string `yaml:"first"`
	Change     []string `yaml:"change"`
	Held       []string `yaml:"held"`
}

// label is the newest value of a topic in a chat, and those before it.
type label struct {
	topic  topic
	newest string
	gone   []string
	words  string // the newest wording
}

const (
	chatTurns   = 500
	chatChanges = 3 // of each topic
	chatBatch   = 25
)

// chatOf writes a chat in which each topic changes a few times among noise.
func chatOf(p chatPhrases, seed uint64, held bool) (turns []string, labels []label) {
	r := rand.New(rand.NewPCG(seed, 7))
	turns = make([]string, chatTurns)
	free := r.Perm(chatTurns)
	for _, t := range p.Topics {
		values := slices.Clone(t.Values)
		if t.Name != "status" { // single, engaged, married, divorced is its own order
			r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		}
		n := min(len(values)-1, chatChanges)
		at := slices.Clone(free[:2*(n+1)])
		free = free[2*(n+1):]
		slices.Sort(at)
		wordings := t.Change
		if held {
			wordings = t.Held
		}
		l := label{topic: t}
		for i := range n + 1 {
			says := t.First[r.IntN(len(t.First))]
			if i > 0 {
				says = wordings[r.IntN(len(wordings))]
				l.gone = append(l.gone, name(values[i-1]))
			}
			text := filled(says, values, i)
			for j, part := range strings.Split(text, " | ") {
				turns[at[2*i+j]] = part
			}
			l.newest, l.words = name(values[i]), text
		}
		labels = append(labels, l)
	}
	pick := func(of int) string { v := p.Topics[of].Values; return v[r.IntN(len(v))] }
	for i := range turns {
		if turns[i] == "" {
			turns[i] = strings.NewReplacer("{x}", pick(0), "{job}", pick(1), "{car}", pick(7)).Replace(p.Noise[r.IntN(len(p.Noise))])
		}
	}
	return turns, labels
}

// name is the part of a value that facts are searched for: "Mitzi" of "cat Mitzi".
func name(value string) string {
	if kind, name, ok := strings.Cut(value, " "); ok && strings.ToLower(kind) == kind && strings.ToLower(name) != name {
		return name
	}
	return value
}

func filled(says string, values []string, i int) string {
	old, kind := values[max(0, i-1)], strings.Fields(values[i])[0]
	return strings.NewReplacer("{v}", name(values[i]), "{o}", name(old), "{k}", kind, "{ok}", strings.Fields(old)[0]).Replace(says)
}

// TestLongChats holds that the newest value of what changes is the current fact,
// and those before it are closed, over chats of 500 turns.
func TestLongChats(t *testing.T) {
	t.Parallel()
	var p chatPhrases
	decodeFile(t, "testdata/chats.yaml", &p)
	x, err := rulepack.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		held  bool
		share float64
	}{{"known wordings", false, 0.9}, {"other wordings", true, 0.8}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			right, all := map[string]int{}, map[string]int{}
			for chat := range uint64(12) {
				turns, labels := chatOf(p, chat, c.held)
				known := remembered(t, x, turns)
				for _, l := range labels {
					all[l.topic.Name]++
					all[""]++
					if wrong := l.check(known); wrong != "" {
						t.Logf("chat %d, %s: %s, after %q", chat, l.topic.Name, wrong, l.words)
						continue
					}
					right[l.topic.Name]++
					right[""]++
				}
			}
			t.Logf("right: %v of %v", right, all)
			if float64(right[""]) < c.share*float64(all[""]) {
				t.Errorf("%d of %d newest values are current and the others closed, want %.0f %%", right[""], all[""], 100*c.share)
			}
		})
	}
}

// check describes an error in the known facts of a topic; empty means none.
func (l label) check(known []events.Fact) string {
	found := false
	for _, f := range known {
		if f.Subject != "user" || !slices.ContainsFunc(l.topic.Predicates, func(p string) bool { return p == f.Predicate }) {
			continue
		}
		found = found || strings.Contains(strings.ToLower(f.Object), strings.ToLower(l.newest))
		for _, old := range l.gone {
			if f.Predicate != "did" && strings.Contains(strings.ToLower(f.Object), strings.ToLower(old)) && !strings.Contains(strings.ToLower(f.Object), strings.ToLower(l.newest)) {
				return fmt.Sprintf("%q is still known by %s", old, f.RuleID)
			}
		}
	}
	if !found {
		return fmt.Sprintf("%q is not known", l.newest)
	}
	return ""
}

// remembered are the facts that hold after the turns, one every five hours.
func remembered(t *testing.T, x extract.Extractor, turns []string) []events.Fact {
	t.Helper()
	whose := scope.Scope{Project: "p", User: "u", Session: "s"}
	memories := decidetest.NewMemory(whose.Fact())
	at := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	var episodes []memory.Episode
	for i, text := range turns {
		role := events.RoleUser
		if said, ok := strings.CutPrefix(text, "A: "); ok {
			role, text = events.RoleAssistant, said
		}
		episodes = append(episodes, memory.Episode{
			ID: fmt.Sprintf("e%04d", i), Scope: whose, Role: role, Content: text,
			Timestamp: at.Add(time.Duration(i) * 5 * time.Hour), Ordinal: uint64(i + 1),
		})
	}
	policy, rule := decide.NewPolicy(nil), rules.Shipped()[0]
	for from := 0; from < len(episodes); from += chatBatch {
		batch := episodes[from:min(len(episodes), from+chatBatch)]
		found, err := x.Extract(t.Context(), batch, extract.Context{
			Scope: whose.Fact(), Rule: rule.ID, Before: episodes[max(0, from-extract.ContextTurns):from],
		})
		if err != nil {
			t.Fatal(err)
		}
		found = slices.DeleteFunc(found, func(c events.Candidate) bool { return policy.Judge(c, rule).Action != decide.Commit })
		now := batch[len(batch)-1].Timestamp
		d, err := deterministic.New().Decide(t.Context(), found, decide.Known{
			Scope: whose.Fact(), At: now, Cause: fmt.Sprint("m", from), Lookup: memories,
			Breaker: decide.Breaker{Limit: 20, Window: time.Hour}, Held: memories.Held(),
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := memories.Apply(d, found, now); err != nil {
			t.Fatal(err)
		}
	}
	return memories.ValidAt(at.Add(chatTurns * 5 * time.Hour))
}
