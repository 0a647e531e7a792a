package extractor

import (
	"strings"
	"testing"

	"palimpsest/internal/extract"
	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/pkg/events"
)

// TestSummaryAtSessionEnd: the rule that reads whole sessions summarises each that
// ends, from all of it, and only where summaries are wanted.
func TestSummaryAtSessionEnd(t *testing.T) {
	t.Parallel()
	r := &fakeReader{}
	for i, text := range []string{"Plan a picnic", "with cake", "and tea", "thanks"} {
		r.episodes = append(r.episodes, said(string(rune('1'+i)), uint64(i+1), "a", text))
	}
	secret := said("5", 5, "b", "off the record")
	secret.Mode = events.ModeIncognito
	r.episodes = append(r.episodes, secret)
	for name, tc := range map[string]struct {
		cfg  Config
		rule string
		want int
	}{
		"sleep":    {Config{Summaries: true}, memory.RuleSleep, 1},
		"turn":     {Config{Summaries: true}, memory.RuleTurn, 0},
		"unwanted": {Config{}, memory.RuleSleep, 0},
	} {
		tc.cfg.Rules = rules.Shipped()
		x := &fakeExtractor{}
		s, err := New(tc.cfg, Deps{Episodes: r, Extractors: map[string]extract.Extractor{"rulepack": x}, Fallback: x})
		if err != nil {
			t.Fatal(err)
		}
		in := tick(tc.rule, 3, 5) // the session began before
		in.Data.SessionEnds = []events.SessionEnd{{Session: "a", LastOrdinal: 4}, {Session: "b", LastOrdinal: 5}}
		out := run1(t, s, in)
		var got []events.Candidate
		for _, c := range out.Candidates {
			if c.Kind == events.FactSummary {
				got = append(got, c)
			}
		}
		if len(got) != tc.want {
			t.Fatalf("%s: %d summaries, want %d", name, len(got), tc.want)
		}
		if tc.want > 0 && (!strings.Contains(got[0].Text, "Plan a picnic") || got[0].SessionIDs[0] != "a" || got[0].Extractor == "") {
			t.Errorf("%s: %+v", name, got[0])
		}
	}
}
