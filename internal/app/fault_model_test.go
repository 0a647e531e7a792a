package app

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"palimpsest/internal/llm"
	"palimpsest/internal/llm/llmtest"
	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// town finds the statements of the drills in the prompt of a stage.
var town = regexp.MustCompile(`(?m)^(\d+)\. \[[^\]]*\] user: (I live in (\w+)\.)$`)

// labels answers like a model that knows the labels of what say and tell publish:
// each home, in other words than the rule packs', and one attribute for all of them.
func labels(asked llmtest.Asked) llmtest.Answer {
	if asked.Name == "operations" {
		return llmtest.Answer{Text: `{"operations":[]}`, Input: 300, Output: 10}
	}
	var facts []string
	for _, m := range town.FindAllStringSubmatch(asked.User, -1) {
		facts = append(facts, fmt.Sprintf(`{"line":%s,"quote":%q,"kind":"semantic","category":"biography","subject":"user","predicate":"lives_in","object":%q,`+
			`"text":"The home of the user is in %s.","cardinality":"one","explicit":true,"hedged":false,"transient":false,"sensitive":"none","negated":false,`+
			`"since":"","until":"","confidence":0.9,"entities":[]}`, m[1], m[2], m[3], m[3]))
	}
	return llmtest.Answer{Text: `{"facts":[` + strings.Join(facts, ",") + `]}`, Input: 1000, Output: 50}
}

// modelled is a configuration whose rule sleep asks the model at url after every
// `every` episodes, with short pauses.
func modelled(t *testing.T, url string, every uint64) Config {
	t.Helper()
	cfg := loopback(t.TempDir())
	cfg.LLM.Provider, cfg.LLM.BaseURL, cfg.LLM.Model = llm.OpenAI, url, "m-1"
	cfg.LLM.Timeout = 20 * time.Second
	cfg.LLM.Limits = llm.Limits{Backoff: 20 * time.Millisecond, BackoffMost: 200 * time.Millisecond}
	cfg.complete()
	for _, rules := range [][]memory.Rule{cfg.Scheduler.Rules, cfg.Extractor.Rules, cfg.Decider.Rules} {
		for i := range rules {
			if rules[i].ID == memory.RuleSleep {
				rules[i].Cadence = memory.Cadence{Every: every, SessionEnd: true}
			}
		}
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// slept waits until the rule with the model has reached ordinal in a user's scope.
func slept(t *testing.T, h *process, user string, ordinal uint64) {
	t.Helper()
	fact := scope.Scope{Project: "default", User: user}
	eventually(t, user+" is consolidated by the model", func() error {
		state, err := h.store.State(t.Context(), fact)
		if err == nil && state.Watermarks[memory.RuleSleep] < ordinal {
			err = fmt.Errorf("the watermark is %d of %d; models: %+v", state.Watermarks[memory.RuleSleep], ordinal, h.governed())
		}
		return err
	})
}

func (h *process) governed() (states []llm.State) {
	for _, g := range h.models.Governors() {
		states = append(states, g.State())
	}
	return states
}

// TestP7FaultModelOutage: the endpoint limits, fails, replies garbage, and works
// again, under several sessions. The rule packs go on undisturbed, calls are
// bounded, nothing is lost or doubled, and nothing goes to the dead letters.
func TestP7FaultModelOutage(t *testing.T) {
	t.Parallel()
	const users, turns = 12, 3
	var phase, calls atomic.Int32
	s := llmtest.Serve(t, llmtest.OpenAI, func(asked llmtest.Asked) llmtest.Answer {
		calls.Add(1)
		switch phase.Load() {
		case 0:
			return llmtest.Answer{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "0.05"}, Body: `{"error":{"message":"slow down"}}`}
		case 1:
			return llmtest.Answer{Status: http.StatusInternalServerError, Body: `{"error":{"message":"oh"}}`}
		case 2:
			return llmtest.Answer{Text: "I am a teapot, and the kettle is on", Input: 10, Output: 10}
		}
		return labels(asked)
	})
	h, stop := openWith(t, modelled(t, s.URL, turns))
	defer stop()
	healed(t, h)
	name := func(i int) string { return fmt.Sprintf("user%d", i) }
	for i := range users {
		for n := range turns {
			tell(t, h, name(i), n+1, fmt.Sprintf("I live in Town%d.", n+1))
		}
	}
	for next := int32(1); next <= 3; next++ {
		before := calls.Load()
		eventually(t, fmt.Sprintf("phase %d is met", next-1), func() error {
			if n := calls.Load() - before; n < 3 {
				return fmt.Errorf("%d calls", n)
			}
			return nil
		})
		check := h.readiness.Ready(t.Context()).Checks["llm"]
		models, _ := check.Details["models"].([]llm.State)
		if !check.OK || len(models) != 1 || !models[0].Paused || models[0].Reason == "" {
			t.Errorf("phase %d: readiness says %+v", next-1, check)
		}
		phase.Store(next)
	}
	outage := calls.Load()
	for i := range users { // rule packs waited for no model
		if total := consolidated(t, h, name(i), turns); total.Skipped != 0 {
			t.Errorf("%s: %+v", name(i), total)
		}
	}
	for i := range users {
		slept(t, h, name(i), turns)
		if got := lives(t, h, name(i)); len(got) != 1 || !strings.EqualFold(got[0], "Town"+strconv.Itoa(turns)) {
			t.Errorf("%s lives in %v", name(i), got)
		}
		versions, err := h.store.FactsByPredicate(t.Context(), scope.Scope{Project: "default", User: name(i)}, "user", "lives_in")
		if err != nil || len(versions) != turns {
			t.Errorf("%s: %d versions of the home, %v", name(i), len(versions), err)
		}
	}
	deadLetters(t, h, 0)
	if state := h.governed()[0]; state.Paused {
		t.Errorf("the model pauses still: %+v", state)
	}
	// One call after each pause: far fewer than ticks and deliveries.
	if total := calls.Load(); outage > 60 || total-outage > 3*users {
		t.Errorf("%d calls in the outage, %d after it", outage, total-outage)
	}
}

// TestModelCalls counts the calls of 100 turns at the shipped cadence, and finds one
// fact for one statement in the words of the rule pack and of the model.
func TestModelCalls(t *testing.T) {
	t.Parallel()
	s := llmtest.Serve(t, llmtest.OpenAI, labels)
	h, stop := openWith(t, modelled(t, s.URL, 100))
	defer stop()
	healed(t, h)
	for n := 1; n <= 100; n++ {
		content := fmt.Sprintf("Turn %d is small talk about the weather.", n)
		if n%10 == 0 {
			content = fmt.Sprintf("I live in Town%d.", n)
		}
		tell(t, h, "nora", n, content)
	}
	consolidated(t, h, "nora", 100)
	slept(t, h, "nora", 100)
	if n := len(s.Asked()); n > 10 {
		t.Errorf("%d calls for 100 turns", n)
	} else {
		t.Logf("%d calls for 100 turns", n)
	}
	versions, err := h.store.FactsByPredicate(t.Context(), scope.Scope{Project: "default", User: "nora"}, "user", "lives_in")
	if err != nil || len(versions) != 10 {
		t.Errorf("%d versions of the home, %v", len(versions), err)
	}
	if got := lives(t, h, "nora"); len(got) != 1 || !strings.EqualFold(got[0], "Town100") {
		t.Errorf("nora lives in %v", got)
	}
	if state := h.governed()[0]; state.Input == 0 || state.Output == 0 || state.Calls != uint64(len(s.Asked())) {
		t.Errorf("tokens are not counted: %+v", state)
	}
	for _, r := range h.cfg.Extractor.Rules {
		if r.ID == memory.RuleSleep && r.Class != events.ClassModel {
			t.Errorf("rule %+v", r)
		}
	}
}
