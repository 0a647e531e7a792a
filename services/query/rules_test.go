package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func payloadsOf(all []sent) (out []events.Payload) {
	for _, s := range all {
		out = append(out, s.p)
	}
	return out
}

func TestListRules(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got, err := r.client.Rules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := api.RuleList{Rules: []api.Rule{
		{ID: "turn", Enabled: true, Every: 1, Extractor: "rulepack", Decider: "rules", CommitOnly: true},
		{ID: "sleep", Enabled: true, Every: 100, Cron: "0 3 * * *", SessionEnd: true},
		{ID: "add", Enabled: true, Request: true},
		{ID: "maintenance", Enabled: true, Cron: "0 3 * * *", Steps: []string{"prune", "enrich"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRunARule(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fact := nora.Fact()
	end := events.SessionEnd{Session: "s", LastOrdinal: 120, Cause: events.EndIdle, At: noon}
	late := events.SessionEnd{Session: "s", LastOrdinal: 300, Cause: events.EndIdle, At: noon}
	r.store.states[fact] = memory.State{LastOrdinal: 310, Incarnation: 2, Watermarks: map[string]uint64{"sleep": 10}}
	r.store.ends = map[scope.Scope][]events.SessionEnd{fact: {end, late}}
	body := api.RunRule{Scope: api.ScopeOf(nora)}
	run, err := r.client.RunRule(t.Context(), "sleep", body)
	want := api.RuleRun{Scope: api.ScopeOf(fact), Rule: "sleep", Status: "accepted", From: 10, To: 210, Remaining: 100, More: true, At: run.At}
	if at, _, err := readToken(fact.Project, run.At); err != nil || at.Rule != "sleep" || at.To != 210 {
		t.Errorf("token %+v, %v", at, err)
	}
	if diff := cmp.Diff(want, run); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	wanted := events.EpisodeStored{Header: events.Header{Scope: fact, Incarnation: 2}, LastOrdinal: 210, StoredAt: noon, Run: "sleep"}
	if diff := cmp.Diff([]events.Payload{wanted}, payloadsOf(r.publisher.sent())); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
	body.Wait, body.Timeout = true, 0.05
	if run, err = r.client.RunRule(t.Context(), "sleep", body); err != nil || run.Status != "accepted" {
		t.Errorf("waited for nothing: %+v, %v", run, err)
	}
	r.store.states[fact] = memory.State{LastOrdinal: 310, Watermarks: map[string]uint64{"sleep": 310}}
	if run, err = r.client.RunRule(t.Context(), "sleep", body); err != nil || run.Status != "idle" || run.Remaining != 0 || run.More {
		t.Errorf("with nothing pending: %+v, %v", run, err)
	}
	if p := r.do(http.MethodPost, "/v1/rules/dream/run", `{"user":"nora"}`).problem(t); p.Status != http.StatusNotFound {
		t.Errorf("an unknown rule: %+v", p)
	}
	if p := r.do(http.MethodPost, "/v1/rules/turn/run", `{}`).problem(t); p.Status != http.StatusUnprocessableEntity && p.Status != http.StatusBadRequest {
		t.Errorf("no scope: %+v", p)
	}
}

func TestRehearseARule(t *testing.T) {
	t.Parallel()
	var asked events.TickIssued
	fails := errors.New("no packs")
	r := newRig(t, func(_ *Config, d *Deps) {
		d.Rehearse = func(_ context.Context, tick events.TickIssued) (events.CandidatesExtracted, events.DeltasDecided, error) {
			asked = tick
			if tick.Rule == "sleep" {
				return events.CandidatesExtracted{}, events.DeltasDecided{}, fails
			}
			noop, err := events.NewNoop(events.Provenance{
				ID: "d", CandidateID: "c", SourceEpisodeIDs: []string{"e1"}, PromotionTS: noon, RuleID: "p", Confidence: 0.5,
				Reason: events.ReasonDuplicate, DecidedBy: "rules@1",
			}, "f1")
			return events.CandidatesExtracted{Candidates: make([]events.Candidate, 3)}, events.DeltasDecided{Deltas: events.Deltas{noop}}, err
		}
	})
	r.store.states[nora.Fact()] = memory.State{LastOrdinal: 2}
	got, err := r.client.RehearseRule(t.Context(), "turn", api.RunRule{Scope: api.ScopeOf(nora)})
	want := api.Rehearsal{
		RuleRun:    api.RuleRun{Scope: api.ScopeOf(nora.Fact()), Rule: "turn", Status: "done", To: 2},
		Candidates: 3,
		Deltas:     []api.Rehearsed{{Event: "NONE", Reason: "duplicate", ID: "f1", Confidence: 0.5, Sources: []string{"e1"}, DecidedBy: "rules@1"}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if asked.Range != (events.Range{To: 2}) || len(payloadsOf(r.publisher.sent())) > 0 {
		t.Errorf("asked for %+v, published %v", asked.Range, payloadsOf(r.publisher.sent()))
	}
	if _, err := r.client.RehearseRule(t.Context(), "sleep", api.RunRule{Scope: api.ScopeOf(nora)}); err == nil {
		t.Error("a failed rehearsal is no error")
	}
}

// A prompt, and a wait where a model reads what waits, make a request of a message.
func TestRequestsOfAModel(t *testing.T) {
	t.Parallel()
	model := func(_ *Config, d *Deps) {
		d.Rules = rules.Shipped()
		for i := range d.Rules {
			if d.Rules[i].ID == memory.RuleAdd {
				d.Rules[i].Class = events.ClassModel
			}
		}
	}
	for name, tt := range map[string]struct {
		change  []func(*Config, *Deps)
		body    string
		request bool
		field   string
	}{
		"plain":                    {[]func(*Config, *Deps){model}, `{"user":"nora","messages":"x"}`, false, ""},
		"prompt":                   {[]func(*Config, *Deps){model}, `{"user":"nora","messages":"x","prompt":"Find pets."}`, true, ""},
		"wait":                     {[]func(*Config, *Deps){model}, `{"user":"nora","messages":"x","wait":true,"timeout":0.01}`, true, ""},
		"wait without a model":     {nil, `{"user":"nora","messages":"x","wait":true,"timeout":0.01}`, false, ""},
		"prompt without a model":   {nil, `{"user":"nora","messages":"x","prompt":"Find pets."}`, false, "prompt"},
		"prompt that is too large": {[]func(*Config, *Deps){model, func(c *Config, _ *Deps) { c.MaxContent = 5 }}, `{"user":"nora","messages":"x","prompt":"Find pets."}`, false, "prompt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tt.change...)
			a := r.do(http.MethodPost, "/v1/episodes", tt.body)
			if tt.field != "" {
				if p := a.problem(t); p.Field != tt.field {
					t.Errorf("%+v", p)
				}
				return
			}
			sent := payloadsOf(r.publisher.sent())
			if e, ok := sent[0].(events.EpisodeRecorded); a.status != http.StatusAccepted || !ok || e.Request != tt.request {
				t.Errorf("%d %s: published %+v", a.status, a.body, sent)
			}
		})
	}
}

// A run of the rule that answers leaves requests to their rule.
func TestRunKeepsRequestsApart(t *testing.T) {
	t.Parallel()
	var tick events.TickIssued
	r := newRig(t, func(_ *Config, d *Deps) {
		d.Rehearse = func(_ context.Context, t events.TickIssued) (out events.CandidatesExtracted, decided events.DeltasDecided, err error) {
			tick = t
			return out, decided, nil
		}
	})
	fact := nora.Fact()
	for n, prompt := range []string{"", "", "birds", ""} {
		r.store.episodes = append(r.store.episodes, memory.Episode{ID: prompt, Scope: nora, Ordinal: uint64(n + 1), Request: prompt != "", Prompt: prompt})
	}
	for _, want := range []struct {
		at, to uint64
		as     string
	}{{0, 2, ""}, {2, 3, "add"}, {3, 4, ""}} {
		r.store.states[fact] = memory.State{LastOrdinal: 4, Watermarks: map[string]uint64{"turn": want.at}}
		run, err := r.client.RunRule(t.Context(), "turn", api.RunRule{Scope: api.ScopeOf(nora)})
		sent := payloadsOf(r.publisher.sent())
		wanted, _ := sent[len(sent)-1].(events.EpisodeStored)
		if err != nil || run.To != want.to || run.Remaining != 4-want.to || wanted.LastOrdinal != want.to {
			t.Errorf("at %d: %+v, %v, published %+v", want.at, run, err, wanted)
		}
		if _, err := r.client.RehearseRule(t.Context(), "turn", api.RunRule{Scope: api.ScopeOf(nora)}); err != nil || tick.As != want.as || (tick.Prompt != "") != (want.as != "") {
			t.Errorf("at %d: %v, tick %+v", want.at, err, tick)
		}
	}
	if _, err := r.client.RunRule(t.Context(), "add", api.RunRule{Scope: api.ScopeOf(nora)}); err == nil {
		t.Error("the rule of requests runs by itself")
	}
}

// A run is bounded by the length of its episodes too, as the scheduler's ticks are.
func TestRunIsBoundedByTokens(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *Config, d *Deps) { d.Bounds.Tokens = 100 })
	fact := nora.Fact()
	for n := range 30 {
		r.store.episodes = append(r.store.episodes, memory.Episode{Scope: nora, Ordinal: uint64(n + 1), Content: strings.Repeat("x", 40)})
	}
	r.store.states[fact] = memory.State{LastOrdinal: 30}
	run, err := r.client.RunRule(t.Context(), "sleep", api.RunRule{Scope: api.ScopeOf(nora)})
	if err != nil || run.To != 10 || run.Remaining != 20 || !run.More {
		t.Errorf("%+v, %v", run, err)
	}
}

// A maintenance run of a full tick says that there may be more.
func TestRunOfMaintenance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range events.MaxUpkeepFacts + 1 {
		f := store.Fact{Scope: nora.Fact(), Strength: 0.01}
		f.ID, f.DecayRate = fmt.Sprintf("f%d", n), 0.1
		r.store.facts = append(r.store.facts, f)
	}
	run, err := r.client.RunRule(t.Context(), "maintenance", api.RunRule{Scope: api.ScopeOf(nora)})
	if err != nil || run.Facts != events.MaxUpkeepFacts || !run.More || run.Remaining != 0 {
		t.Errorf("%+v, %v", run, err)
	}
	r.store.facts = r.store.facts[:1]
	run, err = r.client.RunRule(t.Context(), "maintenance", api.RunRule{Scope: api.ScopeOf(nora)})
	if err != nil || run.Facts != 1 || run.More {
		t.Errorf("of one fact: %+v, %v", run, err)
	}
	r.store.facts = nil
	r.store.entities[nora.Fact()] = []events.Entity{
		{ID: "a", CanonicalName: "Anna", MentionCount: memory.DescribeMentions, LastUpdated: noon.Add(-time.Hour)},
		{ID: "b", CanonicalName: "Bob", MentionCount: memory.DescribeMentions - 1, LastUpdated: noon.Add(-time.Hour)},
		{ID: "c", CanonicalName: "Carl", MentionCount: 9, Summary: "Carl is a person.", LastUpdated: noon.Add(-time.Hour)},
	}
	run, err = r.client.RunRule(t.Context(), "maintenance", api.RunRule{Scope: api.ScopeOf(nora)})
	if err != nil || run.Facts != 0 || run.Entities != 1 || run.Status != "accepted" {
		t.Errorf("of one entity: %+v, %v", run, err)
	}
}
