package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// sessionEnd ends sessions in both ways. The rule for the end of a session then
// consolidates their episodes.
func sessionEnd(t *testing.T, i *instance) {
	for name, end := range map[string]func(i *instance, who scope.Scope){
		"http": func(i *instance, who scope.Scope) {
			w, err := i.api.EndSession(i.t.Context(), api.ScopeOf(who), "disconnect")
			if err != nil || w.CorrelationID == "" {
				i.t.Fatalf("%+v, %v", w, err)
			}
		},
		"nats": func(i *instance, who scope.Scope) {
			i.envelope("end", events.SessionEnded{Scope: who, Cause: events.EndExplicit})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, who := i.in(t), i.person(name)
			i.say(who, "I live in Oslo.", "My favourite colour is green.")
			i.settled(of(who), 2)
			if a := i.account("sleep", of(who)); a.Pending != 2 {
				t.Errorf("before the end: %+v", a)
			}
			end(i, who)
			if a := i.settledBy("sleep", of(who), 2); a.Consolidated != 2 {
				t.Errorf("after the end: %+v", a)
			}
			ends := 0
			for _, e := range i.effects(of(who)) {
				for _, at := range e.SessionEnds {
					ends++
					if at.Session != who.Session || at.LastOrdinal != 2 {
						t.Errorf("end: %+v", at)
					}
				}
			}
			if ends != 1 {
				t.Errorf("%d ends", ends)
			}
			// A new message reopens a session.
			i.say(who, "I like Python.")
			i.settled(of(who), 3)
			if a := i.account("sleep", of(who)); a.Pending != 1 {
				t.Errorf("after going on: %+v", a)
			}
		})
	}
}

// account reads a rule's account as it is now.
func (i *instance) account(rule string, sel scope.Selector) api.Account {
	i.t.Helper()
	l, err := i.project(sel).Ledger(i.t.Context(), sel, false)
	if err != nil {
		i.t.Fatal(err)
	}
	for _, a := range l.Totals {
		if a.Rule == rule {
			return a
		}
	}
	i.t.Fatalf("no account of %s: %+v", rule, l.Totals)
	return api.Account{}
}

// waitAnswersWithOutcomes posts and waits: the answer tells what came of
// each message, the same call again gives the same answer, and another body
// under the same key is refused.
func waitAnswersWithOutcomes(t *testing.T, i *instance) {
	who := i.person("ann")
	body := api.Record{Scope: api.ScopeOf(who), Wait: true, Messages: api.Messages{
		{Content: "I live in Oslo."}, {Content: "Thanks."}, {Content: "I moved to Bergen."},
	}}
	first, err := i.api.Record(t.Context(), body, "key")
	if err != nil {
		t.Fatal(err)
	}
	if first.Status != "done" || len(first.Episodes) != 3 {
		t.Fatalf("answer: %+v", first)
	}
	var told []string
	for _, r := range first.Results {
		told = append(told, r.Event+" "+r.OldMemory+" > "+r.Memory)
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], "ADD ") || !strings.HasPrefix(told[1], "UPDATE ") ||
		!strings.Contains(told[1], "Oslo") || !strings.Contains(told[1], "Bergen") {
		t.Errorf("results: %q", told)
	}
	again, err := i.api.Record(t.Context(), body, "key")
	if err != nil || again.CorrelationID != first.CorrelationID || len(again.Results) != len(first.Results) {
		t.Errorf("again: %+v, %v", again, err)
	}
	body.Messages[0].Content = "I live in Rome."
	_, err = i.api.Record(t.Context(), body, "key")
	wantProblem(t, "another body", err, http.StatusUnprocessableEntity, api.CodeIdempotencyMismatch)
	wantOne(t, i.facts(of(who)), "Bergen")
	if got := i.recent(of(who)); len(got) != 3 {
		t.Errorf("%q", contents(got))
	}
}

// readYourWrites reads with the token of each write, at once.
func readYourWrites(t *testing.T, i *instance) {
	who := i.person("ann")
	for n := range 15 {
		said := fmt.Sprintf("message %d", n)
		w, err := i.api.Record(t.Context(), api.Record{Scope: api.ScopeOf(who), Messages: api.Messages{{Content: said}}}, "")
		if err != nil {
			t.Fatal(err)
		}
		found, err := i.api.Search(t.Context(), api.Search{Selector: api.Selector{User: &who.User}, Text: said, At: w.At, Types: []string{"episode"}, Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		seen := false
		for _, h := range found.Results {
			seen = seen || h.Text == said
		}
		if found.Stale || !seen {
			t.Errorf("%s is not among %d results, stale %v", said, len(found.Results), found.Stale)
		}
	}
	remembered, err := i.api.Remember(t.Context(), api.Remember{Scope: api.Scope{User: "ann"}, Text: "Ann keeps bees."}, "")
	if err != nil || remembered.Fact == nil {
		t.Fatalf("%+v, %v", remembered, err)
	}
	corrected, err := i.api.Correct(t.Context(), remembered.Fact.ID, 1, api.Correct{Text: "Ann keeps wasps."})
	if err != nil {
		t.Fatal(err)
	}
	found, err := i.api.Search(t.Context(), api.Search{Selector: api.Selector{User: &who.User}, Text: "wasps", At: corrected.At})
	if err != nil || found.Stale || len(found.Results) == 0 || found.Results[0].Text != "Ann keeps wasps." {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = i.api.Correct(t.Context(), remembered.Fact.ID, 1, api.Correct{Text: "Ann keeps ants."})
	wantProblem(t, "an old revision", err, http.StatusConflict, api.CodeFactConflict)
}
