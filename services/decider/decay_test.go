package decider

import (
	"testing"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
)

// TestDecayIsASetting: a new fact decays at the rate of its kind.
func TestDecayIsASetting(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		settings []string
		kind     events.FactKind
		want     float64
	}{
		{nil, events.FactSemantic, memory.DefaultDecayRate},
		{nil, events.FactSummary, 0},
		{[]string{"0.3"}, events.FactSemantic, 0.3},
		{[]string{"0.3"}, events.FactSummary, 0},
		{[]string{"opinion=0.5", "0.2"}, events.FactOpinion, 0.5},
		{[]string{"opinion=0.5", "0.2"}, events.FactProcedural, 0.2},
		{[]string{"summary=0.05"}, events.FactSummary, 0.05},
	} {
		f := newFake()
		s := open(t, f, Config{Decay: row.settings})
		c := says("e1", "likes", "tea", 1)
		c.Kind = row.kind
		in := batch(c)
		in.Data.Rule = memory.RuleSleep
		out, _ := decided(t, s, in)
		if _, err := f.mem.Commit(out, noon); err != nil {
			t.Fatal(err)
		}
		if facts := f.mem.Facts(); len(facts) != 1 || facts[0].DecayRate != row.want {
			t.Errorf("%v, %s: %+v, want the rate %g", row.settings, row.kind, facts, row.want)
		}
	}
	for _, wrong := range []string{"fast", "-1", "11", "NaN", "mood=0.1", "opinion=", "=0.1"} {
		if err := (Config{Decay: []string{wrong}}).Validate(); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
