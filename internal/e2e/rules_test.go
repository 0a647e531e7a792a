package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/pkg/api"
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
