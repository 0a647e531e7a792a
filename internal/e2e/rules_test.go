package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

// rulesRunOnDemand rehearses a rule, which changes nothing, and then runs it before
// its cadence would.
func rulesRunOnDemand(t *testing.T, i *instance) {
	list, err := i.api.Rules(t.Context())
	if err != nil || len(list.Rules) < 2 || list.Rules[0].ID != "turn" {
		t.Fatalf("rules %+v, %v", list, err)
	}
	who := i.person("ann")
	i.say(who, "I live in Oslo.", "I like Python.", "hello")
	i.settled(of(who), 3)
	before := i.facts(of(who))
	body := api.RunRule{Scope: api.ScopeOf(who), Wait: true}
	dry, err := i.api.RehearseRule(t.Context(), "sleep", body)
	if err != nil || dry.To != 3 || dry.Candidates != 2 || len(dry.Deltas) != 2 {
		t.Fatalf("rehearsal %+v, %v", dry, err)
	}
	for _, d := range dry.Deltas {
		if d.Event != "NONE" || d.Reason != "duplicate" {
			t.Errorf("sleep would decide %+v on what turn committed", d)
		}
	}
	if a := i.account("sleep", of(who)); a.Pending != 3 {
		t.Errorf("after the rehearsal: %+v", a)
	}
	var run api.RuleRun
	out := i.cli("", "--json", "rules", "run", "sleep", "--user", who.User, "--agent", who.Agent)
	if err := json.Unmarshal([]byte(out), &run); err != nil || run.Status != "done" || run.To != 3 {
		t.Fatalf("run says %s, %v", out, err)
	}
	if a := i.account("sleep", of(who)); a.Consolidated != 3 || a.Pending != 0 {
		t.Errorf("after the run: %+v", a)
	}
	if diff := cmp.Diff(texts(before), texts(i.facts(of(who)))); diff != "" {
		t.Errorf("facts changed:\n%s", diff)
	}
	if out := i.cli("", "rules", "run", "sleep", "--user", who.User, "--agent", who.Agent); !strings.Contains(out, "nothing is pending") {
		t.Errorf("a second run says %q", out)
	}
	if out := i.cli("", "rules"); !strings.Contains(out, "session end") || !strings.Contains(out, "every 1") {
		t.Errorf("rules says %q", out)
	}
}

// maintenancePrunes: a fact below the threshold is closed by a delta that says so, a
// confirmed one and one above it stay, a second run changes nothing, and a
// pruned fact can be restored.
func maintenancePrunes(t *testing.T, i *instance) {
	who := i.person("ann")
	state := func(text string, confidence float64) string {
		w, err := i.api.Remember(t.Context(), api.Remember{Scope: api.ScopeOf(who), Text: text, Confidence: &confidence}, "")
		if err != nil || len(w.Results) != 1 {
			t.Fatalf("remember: %+v, %v", w, err)
		}
		return w.Results[0].ID
	}
	weak, kept, sure := state("Ann once saw a heron.", 0.04), state("Ann plays the cello.", 0.9), state("Ann was born in Oslo.", 0.03)
	if _, err := i.api.Confirm(t.Context(), sure, 0); err != nil {
		t.Fatal(err)
	}
	body := api.RunRule{Scope: api.ScopeOf(who), Wait: true}
	dry, err := i.api.RehearseRule(t.Context(), "maintenance", body)
	if err != nil || len(dry.Deltas) != 1 || dry.Deltas[0].Event != "DELETE" || dry.Deltas[0].Memory != "Ann once saw a heron." {
		t.Fatalf("rehearsal %+v, %v", dry, err)
	}
	if n := len(i.facts(of(who))); n != 3 {
		t.Fatalf("%d facts after the rehearsal", n)
	}
	run, err := i.api.RunRule(t.Context(), "maintenance", body)
	if err != nil || run.Status != "done" || run.Facts != 1 {
		t.Fatalf("run %+v, %v", run, err)
	}
	left := map[string]bool{}
	for _, f := range i.facts(of(who)) {
		left[f.ID] = true
	}
	if left[weak] || !left[kept] || !left[sure] {
		t.Errorf("left are %v", left)
	}
	before := len(i.effects(of(who)))
	if run, err = i.api.RunRule(t.Context(), "maintenance", body); err != nil || run.Status != "idle" {
		t.Errorf("a second run: %+v, %v", run, err)
	}
	effects := i.effects(of(who))
	if len(effects) != before {
		t.Errorf("the second run made %d effects", len(effects)-before)
	}
	last := effects[len(effects)-1]
	if d := last.Applied[0].Delta.Provenance(); last.Rule != "maintenance" || d.Reason != events.ReasonBelowThreshold {
		t.Errorf("the effect is %+v", last)
	}
	if l, err := i.api.Ledger(t.Context(), of(who), true); err != nil || !l.Balanced {
		t.Errorf("ledger %+v, %v", l, err)
	}
	if _, err := i.api.Restore(t.Context(), weak, 0); err != nil {
		t.Fatal(err)
	}
	if n := len(i.facts(of(who))); n != 3 {
		t.Errorf("%d facts after the restore", n)
	}
}

// maintenanceSummarises: an entity that is mentioned three times gets a summary of its
// facts by a delta, once; a fact that is forgotten takes the summary along.
func maintenanceSummarises(t *testing.T, i *instance) {
	who := i.person("ann")
	i.say(who, "I work at Fenwick Labs.", "My sister Ida works at Fenwick Labs.", "My friend Ben works at Fenwick Labs.")
	i.settled(of(who), 3)
	summary := func() string {
		info, err := i.api.Entity(t.Context(), of(who), "Fenwick Labs")
		if err != nil {
			t.Fatal(err)
		}
		return info.Summary
	}
	if s := summary(); s != "" {
		t.Fatalf("before maintenance: %q", s)
	}
	body := api.RunRule{Scope: api.ScopeOf(who), Wait: true}
	run, err := i.api.RunRule(t.Context(), "maintenance", body)
	if err != nil || run.Status != "done" || run.Entities != 1 {
		t.Fatalf("run %+v, %v", run, err)
	}
	first := summary()
	for _, word := range []string{"Fenwick Labs is an organization.", "Ida", "Ben"} {
		if !strings.Contains(first, word) {
			t.Errorf("%q says nothing of %q", first, word)
		}
	}
	effects := i.effects(of(who))
	last := effects[len(effects)-1]
	if d := last.Applied[0].Delta; len(last.Applied) != 1 || d.Kind() != events.DeltaUpdate || len(d.Provenance().SourceEpisodeIDs) == 0 || last.Rule != "maintenance" {
		t.Errorf("the effect is %+v", last)
	}
	if run, err = i.api.RunRule(t.Context(), "maintenance", body); err != nil || run.Status != "idle" {
		t.Errorf("a second run: %+v, %v", run, err)
	}
	for _, f := range i.facts(of(who)) {
		if strings.Contains(f.Text, "Ben") {
			if _, err := i.api.Delete(t.Context(), f.ID, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s := summary(); s != "" {
		t.Errorf("after a fact was forgotten: %q", s)
	}
	if run, err = i.api.RunRule(t.Context(), "maintenance", body); err != nil || run.Status != "done" {
		t.Fatalf("run %+v, %v", run, err)
	}
	if s := summary(); s == "" || strings.Contains(s, "Ben") {
		t.Errorf("the next summary: %q", s)
	}
}
