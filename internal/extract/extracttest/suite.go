package extracttest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/extract"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// noon is when everything in the suite is said: a Friday.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Options opts out of what an extractor cannot do; the zero value runs all.
type Options struct {
	// Whole, with the reason, leaves out that cuts change nothing, as they do where a
	// model reads several episodes together.
	Whole string
	// Decided, with the reason, does not ask which facts a candidate ends, where
	// that is left to the decider.
	Decided string
}

// RunAll runs the suite. fresh returns an extractor that shares nothing that
// changes with those it returned before.
func RunAll(t *testing.T, fresh func() extract.Extractor, opts Options) {
	t.Helper()
	t.Run("behaviour", func(t *testing.T) { behaviour(t, fresh(), opts) })
	t.Run("laws", func(t *testing.T) { laws(t, fresh()) })
	if opts.Whole == "" {
		t.Run("cuts", func(t *testing.T) { cuts(t, fresh()) })
	}
	t.Run("publisher's word", func(t *testing.T) { explicit(t, fresh()) })
	t.Run("cancelled", func(t *testing.T) { cancelled(t, fresh()) })
}

// Talk makes episodes of lines "role: content"; a line without one of the roles
// is the user's.
func Talk(lines ...string) []memory.Episode {
	out := make([]memory.Episode, 0, len(lines))
	for i, l := range lines {
		role, content, ok := strings.Cut(l, ": ")
		switch events.Role(role) {
		case events.RoleUser, events.RoleAssistant, events.RoleSystem, events.RoleTool:
		default:
			ok = false
		}
		if !ok {
			role, content = string(events.RoleUser), l
		}
		out = append(out, memory.Episode{
			ID: fmt.Sprintf("e%d", i+1), Scope: scope.Scope{Project: "p", User: "u", Session: "s"}, Role: events.Role(role),
			Content: content, Timestamp: noon.Add(time.Duration(i) * time.Minute), Ordinal: uint64(i + 1),
		})
	}
	return out
}

func extracted(t *testing.T, x extract.Extractor, episodes, before []memory.Episode) []events.Candidate {
	t.Helper()
	out, err := x.Extract(context.Background(), episodes, extract.Context{
		Scope: scope.Scope{Project: "p", User: "u"}, Rule: "sleep", Before: before,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var conversation = []string{
	"Hello, Nora here. I'm a hydrologist at Fenwick Labs.",
	"assistant: What do you study there?",
	"River ice and sediment. For plotting I'd take Julia over Matlab.",
	"My brother Tom hates cilantro.",
	"assistant: Where does he live? I love Rome.",
	"He lives in Rome. I've left Fenwick, I'm with Tarn Institute now.",
	"system: My name is Bot and I live in Oslo.",
	"tool: I am a vegetarian",
	"i moved to bergen last week, and i love pizza, pasta and sushi",
	"Меня зовут Нора. Я люблю лёд.",
}

// laws holds every candidate of a conversation to the contract.
func laws(t *testing.T, x extract.Extractor) {
	episodes := Talk(conversation...)
	byID := make(map[string]memory.Episode)
	for _, e := range episodes {
		byID[e.ID] = e
	}
	first, again := extracted(t, x, episodes, nil), extracted(t, x, episodes, nil)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the same arguments give other candidates:\n%s", diff)
	}
	seen := make(map[string]bool)
	ordinal := uint64(0)
	for _, c := range first {
		if seen[c.ID] || c.ID == "" {
			t.Errorf("id %q of %q is empty or used twice", c.ID, c.Text)
		}
		seen[c.ID] = true
		if c.Ordinal < ordinal {
			t.Errorf("%q stands behind what was said later", c.Text)
		}
		ordinal = c.Ordinal
		if c.Text == "" || c.RuleID == "" || c.Extractor != x.Name() || !c.Kind.Valid() || c.Confidence < 0 || c.Confidence > 1 || c.EventTime.IsZero() {
			t.Errorf("incomplete: %+v", c)
		}
		grounded := false
		for _, id := range c.SourceEpisodeIDs {
			e := byID[id]
			grounded = grounded || c.EvidenceQuote != "" && strings.Contains(e.Content, c.EvidenceQuote)
			if e.Role != events.RoleUser {
				t.Errorf("%q comes of words of %s", c.Text, e.Role)
			}
		}
		if !grounded {
			t.Errorf("%q: evidence %q is in none of its episodes", c.Text, c.EvidenceQuote)
		}
	}
}

// cuts holds that however a sequence is cut into calls, it gives the same.
func cuts(t *testing.T, x extract.Extractor) {
	episodes := Talk(conversation...)
	want := extracted(t, x, episodes, nil)
	for at := 1; at < len(episodes); at++ {
		before := episodes[max(0, at-extract.ContextTurns):at]
		got := append(extracted(t, x, episodes[:at], nil), extracted(t, x, episodes[at:], before)...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("cut after %d (-whole +cut):\n%s", at, diff)
		}
	}
}

// explicit holds what a publisher says in metadata, and that nothing is read of
// incognito episodes or of injected memory.
func explicit(t *testing.T, x extract.Extractor) {
	one := func(change func(*memory.Episode)) []events.Candidate {
		e := Talk("I live in Oslo")[0]
		change(&e)
		return extracted(t, x, []memory.Episode{e}, nil)
	}
	got := one(func(e *memory.Episode) {
		e.Metadata = map[string]any{"subject": "user", "predicate": "lives_in", "object": "Oslo", "channel": "mail"}
	})
	if len(got) != 1 || got[0].Object != "Oslo" || got[0].Confidence != 1 || got[0].EvidenceQuote != "I live in Oslo" || got[0].Metadata["channel"] != "mail" {
		t.Errorf("metadata gives %+v", got)
	}
	got = one(func(e *memory.Episode) { e.Verbatim = true })
	if len(got) != 1 || got[0].Text != "I live in Oslo" {
		t.Errorf("verbatim gives %+v", got)
	}
	got = one(func(e *memory.Episode) {
		e.Content = "forget it"
		e.Metadata = map[string]any{"intent": "delete", "replaces": []any{"f1"}}
	})
	if len(got) != 1 || got[0].Intent != "delete" || len(got[0].Replaces) != 1 {
		t.Errorf("an intent gives %+v", got)
	}
	if got = one(func(e *memory.Episode) { e.Mode = events.ModeIncognito }); len(got) > 0 {
		t.Errorf("incognito gives %+v", got)
	}
	got = one(func(e *memory.Episode) {
		e.Content = memory.ContextOpen + "\nI live in Oslo\n" + memory.ContextClose + "\nhello"
	})
	if len(got) > 0 {
		t.Errorf("injected memory gives %+v", got)
	}
}

func cancelled(t *testing.T, x extract.Extractor) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := x.Extract(ctx, Talk("I live in Oslo"), extract.Context{}); err == nil {
		t.Error("a cancelled context gives no error")
	}
}
