package query

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/retrieval/assembly"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// contextual is narrowable with an instruction, a summary and a held candidate.
func contextual(t *testing.T) *rig {
	t.Helper()
	r := narrowable(t)
	of := scope.Scope{Project: "default", User: "nora"}
	rule, summary := fact1("rule", 1, "Answer in Norwegian."), fact1("summary", 1, "Nora planned a trip.")
	rule.Kind, summary.Kind, rule.Scope, summary.Scope = events.FactProcedural, events.FactSummary, of, of
	summary.EventTime = noon.Add(-90 * 24 * time.Hour)
	r.store.facts = append(r.store.facts, rule, summary)
	r.store.facts[0].Subject, r.store.facts[0].Predicate, r.store.facts[0].Object = "user", "LIVES_IN", "Oslo"
	r.store.facts[0].EvidenceQuote = "I live in Oslo"
	oslo := r.store.facts[0]
	r.store.text[0].Fact = &oslo
	return r
}

func TestContext(t *testing.T) {
	t.Parallel()
	r := contextual(t)
	user := "nora"
	got, err := r.client.Assemble(t.Context(), api.ContextQuery{Selector: api.Selector{User: &user}, Text: "Where does Nora live?"})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"## Instructions\n- Answer in Norwegian. [rule]\n", "## Facts\n", `- [biography] user LIVES_IN Oslo (1.00, 2026-`, `: "I live in Oslo" [oslo]`,
		"Nora drinks tea.", "## When\n", `user: "said e1" [e1]`,
	} {
		if !strings.Contains(got.Context, line) {
			t.Errorf("%q is missing in\n%s", line, got.Context)
		}
	}
	if strings.Contains(got.Context, "trip") || strings.Contains(got.Context, "e2") {
		t.Errorf("a summary in mid-session, or an episode outside the window:\n%s", got.Context)
	}
	if got.Tokens != assembly.Tokens(got.Context) || got.Tokens > 1000 || got.IDs[0] != "rule" || got.Complexity != "simple" {
		t.Errorf("%+v", got)
	}
	again, err := r.client.Assemble(t.Context(), api.ContextQuery{Selector: api.Selector{User: &user}, Text: "Where does Nora live?"})
	if diff := cmp.Diff(got, again); diff != "" || err != nil {
		t.Errorf("the same again: %v\n%s", err, diff)
	}
}

// TestContextHasTheProfile: a fact that the search did not find is in the block,
// behind those that it found, unless the question narrows the facts.
func TestContextHasTheProfile(t *testing.T) {
	t.Parallel()
	r := contextual(t)
	allergy := fact1("allergy", 1, "Nora is allergic to penicillin.")
	allergy.Scope, allergy.Kind = scope.Scope{Project: "default", User: "nora"}, events.FactSemantic
	r.store.facts = append(r.store.facts, allergy)
	for body, want := range map[string]bool{`"text":"Where does Nora live?"`: true, `"text":"Where?","kinds":["semantic"]`: false} {
		out := into[api.Context](t, r.do(http.MethodPost, "/v1/context", `{"user":"nora",`+body+`}`), 200)
		if at := strings.Index(out.Context, "penicillin"); at >= 0 != want || want && at < strings.Index(out.Context, "Oslo") {
			t.Errorf("%s:\n%s", body, out.Context)
		}
	}
}

func TestContextBeginsWithTheSummary(t *testing.T) {
	t.Parallel()
	r := contextual(t)
	for body, want := range map[string]bool{
		`"first_turn":true`: true, `"session":"new"`: true, `"session":"s1"`: false, `"budget":500`: false,
	} {
		out := into[api.Context](t, r.do(http.MethodPost, "/v1/context", `{"user":"nora","text":"what",`+body+`}`), 200)
		if strings.Contains(out.Context, "planned a trip") != want {
			t.Errorf("%s:\n%s", body, out.Context)
		}
	}
}

// Without a user, a session is no way to the instructions of others.
func TestContextKeepsToItsSession(t *testing.T) {
	t.Parallel()
	r := contextual(t)
	for _, of := range []string{`"session":"s1"`, `"agent":"","session":"s1"`, `"user":"","session":"s1"`} {
		a := r.do(http.MethodPost, "/v1/context", `{`+of+`,"text":"what","first_turn":true}`)
		if strings.Contains(a.body, "Answer in Norwegian") || strings.Contains(a.body, "planned a trip") {
			t.Errorf("%s: %d %s", of, a.status, a.body)
		}
	}
}

func TestContextNarrows(t *testing.T) {
	t.Parallel()
	r := contextual(t)
	out := into[api.Context](t, r.do(http.MethodPost, "/v1/context",
		`{"user":"nora","text":"what","filters":{"field":"metadata.topic","operator":"eq","value":"food"},"episode_window":"90d"}`), 200)
	if diff := cmp.Diff([]string{"tea", "e2"}, out.IDs); diff != "" {
		t.Error(diff)
	}
	if a := r.do(http.MethodPost, "/v1/context", `{"user":"nora","text":"what","filters":{"OR":[]}}`); a.status != http.StatusNoContent || a.body != "" {
		t.Errorf("nothing known: %d %q", a.status, a.body)
	}
	user := "nora"
	if got, err := r.client.Assemble(t.Context(), api.ContextQuery{Selector: api.Selector{User: &user}, Text: "what", Filters: []byte(`{"OR":[]}`)}); err != nil || got.Context != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if got := into[api.Context](t, r.do(http.MethodPost, "/v1/context", `{"user":"nora","text":"what","budget":60}`), 200); got.Tokens > 60 {
		t.Errorf("%d tokens", got.Tokens)
	}
	for body, field := range map[string]string{`"budget":-1`: "budget", `"episode_window":"x"`: "episode_window", `"kinds":["x"]`: "kinds"} {
		if p := r.do(http.MethodPost, "/v1/context", `{"user":"nora","text":"what",`+body+`}`).problem(t); p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
}

func TestContextLeavesSensitiveCandidatesOut(t *testing.T) {
	t.Parallel()
	r := contextual(t)
	of := scope.Scope{Project: "default", User: "nora"}
	for _, h := range []events.Hold{
		{ID: "h1", Candidate: events.Candidate{Text: "Nora may move.", Sensitivity: events.SensitivityNone}},
		{ID: "h2", Candidate: events.Candidate{Text: "Nora is ill.", Sensitivity: events.SensitivitySensitive}},
	} {
		r.store.holds = append(r.store.holds, store.Hold{Hold: h, Scope: of})
	}
	out := into[api.Context](t, r.do(http.MethodPost, "/v1/context", `{"user":"nora","text":"what"}`), 200)
	if !strings.Contains(out.Context, "(unconfirmed) Nora may move. [h1]") || strings.Contains(out.Context, "ill") {
		t.Errorf("\n%s", out.Context)
	}
}

// TestGuardrailOldSummaries: a question finds no summary of a session that is older than
// 30 days. The first turn of a session has the newest one at any age.
func TestGuardrailOldSummaries(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"What did Nora plan?", "the trip", "tell me about our plans"} {
		for days, want := range map[int]bool{29: true, 31: false, 400: false} {
			r := contextual(t)
			arc := fact1("arc", 1, "Nora planned a trip to Rome.")
			arc.Kind, arc.Scope, arc.EventTime = events.FactSummary, scope.Scope{Project: "default", User: "nora"}, noon.AddDate(0, 0, -days)
			r.store.facts = []store.Fact{arc}
			r.store.text = []store.Hit{{Score: 4, Fact: &arc}}
			first := into[api.Context](t, r.do(http.MethodPost, "/v1/context", `{"user":"nora","first_turn":true,"text":"`+text+`"}`), 200)
			if !strings.Contains(first.Context, "Rome") {
				t.Errorf("%s, %d days: the first turn has no summary:\n%s", text, days, first.Context)
			}
			found := into[api.Found](t, r.do(http.MethodPost, "/v1/search", `{"user":"nora","episode_window":"30d","text":"`+text+`"}`), 200)
			if (len(found.Results) > 0 && found.Results[0].ID == "arc") != want {
				t.Errorf("%s, %d days: %+v", text, days, found.Results)
			}
			if later := r.do(http.MethodPost, "/v1/context", `{"user":"nora","session":"s1","text":"`+text+`"}`); !want && strings.Contains(later.body, "Rome") {
				t.Errorf("%s, %d days: a later turn says %s", text, days, later.body)
			}
		}
	}
}
