package extract

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	session := func(texts ...string) (said []memory.Episode) {
		for i, text := range texts {
			said = append(said, memory.Episode{
				ID: fmt.Sprint("e", i), Scope: scope.Scope{Project: "p", User: "u", Session: "s"}, Role: events.RoleUser, Content: text,
				Timestamp: time.Date(2026, 5, 4, 9, i, 0, 0, time.UTC), Ordinal: uint64(i + 1),
			})
		}
		return said
	}
	states := func(text string, of events.Sensitivity) events.Candidate {
		return events.Candidate{
			Kind: events.FactSemantic, Text: text, EvidenceQuote: text, Explicit: true, Sensitivity: of, SourceEpisodeIDs: []string{"e0"},
		}
	}
	guess := states("The user likes jazz.", events.SensitivityNone)
	guess.Hedged = true
	home, health := states("The user lives in Oslo.", events.SensitivityNone), states("The user takes lithium.", events.SensitivitySensitive)
	for name, tc := range map[string]struct {
		said  []memory.Episode
		found []events.Candidate
		want  string
	}{
		"too short":     {session("I live in Oslo.", "Thanks."), []events.Candidate{home}, ""},
		"statements":    {session("I live in Oslo.", "Maybe I like jazz.", "Thanks."), []events.Candidate{home, guess}, "Session of 4 May 2026: The user lives in Oslo."},
		"said twice":    {session("I live in Oslo.", "I live in Oslo.", "Thanks."), []events.Candidate{home, home}, "Session of 4 May 2026: The user lives in Oslo."},
		"private":       {session("I take lithium.", "Every day.", "Thanks."), []events.Candidate{health}, ""},
		"no statement":  {session("Plan a picnic for me", "With cake", "Thanks."), nil, `Session of 4 May 2026: The user wrote: "Plan a picnic for me"`},
		"one long turn": {session("Please help. " + strings.Repeat("word ", 160)), nil, "Session of 4 May 2026: The user wrote: \"Please help. word"},
	} {
		c, ok := Summary(tc.said, tc.found, "sleep")
		if ok != (tc.want != "") || !strings.HasPrefix(c.Text, tc.want) {
			t.Errorf("%s: %q, %v; want %q", name, c.Text, ok, tc.want)
		}
		if ok && (len(c.SourceEpisodeIDs) != 1 || c.EvidenceQuote == "" || len([]rune(c.Text)) > 260) {
			t.Errorf("%s: %+v", name, c)
		}
		again, _ := Summary(tc.said, tc.found, "sleep")
		if again.ID != c.ID {
			t.Errorf("%s: another id", name)
		}
	}
}
