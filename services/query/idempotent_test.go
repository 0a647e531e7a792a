package query

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
)

func TestSameKeySameAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.behind(true)
	for _, wait := range []bool{false, true} {
		body := api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}}, Wait: wait}
		key := map[bool]string{false: "k1", true: "k2"}[wait]
		first, err := r.client.Record(t.Context(), body, key)
		if err != nil {
			t.Fatal(err)
		}
		n := len(r.publisher.sent())
		second, err := r.client.Record(t.Context(), body, key)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Errorf("wait %v: answers differ:\n%s", wait, diff)
		}
		if len(r.publisher.sent()) != n {
			t.Errorf("wait %v: published again", wait)
		}
	}
}

func TestSameKeyOtherBody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := []string{"Idempotency-Key", "k"}
	r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":"a"}`, key...)
	p := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":"b"}`, key...).problem(t)
	if p.Status != 422 || p.Code != api.CodeIdempotencyMismatch || p.Field != "Idempotency-Key" {
		t.Errorf("%+v", p)
	}
	// Keys belong to a project and a route.
	for path, body := range map[string]string{
		"/v1/episodes?project=rival": `{"user":"nora","messages":"b"}`,
		"/v1/sessions/s/end":         `{"user":"nora"}`,
		"/v1/sessions/t/end":         `{"user":"nora"}`,
	} {
		if a := r.do(http.MethodPost, path, body, key...); a.status != 202 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}

func TestRefusedBodyLeavesTheKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, body := range []string{`{"user":"nora"}`, `{"user":"nora","messages":""}`, `{"messages":"x"}`} {
		r.do(http.MethodPost, "/v1/episodes", body, "Idempotency-Key", "k").problem(t)
	}
	if a := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":"a"}`, "Idempotency-Key", "k"); a.status != 202 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestUnfinishedRunsAgainWithTheSameIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fails := true
	r.publisher.hook = func(_ context.Context, _ events.Meta, p events.Payload) error {
		if fails && strings.HasSuffix(p.(events.EpisodeRecorded).Content, "b") {
			return errDown
		}
		return nil
	}
	body := `{"user":"nora","messages":[{"content":"a"},{"content":"b"}]}`
	r.do(http.MethodPost, "/v1/episodes", body, "Idempotency-Key", "k").problem(t)
	fails = false
	out := into[api.Written](t, r.do(http.MethodPost, "/v1/episodes", body, "Idempotency-Key", "k"), 202)
	all := r.publisher.sent()
	if len(all) != 3 || all[0].meta.ID != all[1].meta.ID || all[0].meta.ID != out.Episodes[0].ID || all[2].meta.ID == all[1].meta.ID {
		t.Errorf("%+v", all)
	}
}

func TestAnswerThatCannotBeKeptIsGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.finish = errDown
	out, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}}}, "k")
	if err != nil || out.Status != "accepted" || !strings.Contains(r.logs.String(), "answer not kept") {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestKeyNeedsTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.fail(errDown)
	a := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":"a"}`, "Idempotency-Key", "k")
	if p := a.problem(t); p.Code != api.CodeStoreUnavailable || a.header.Get("Retry-After") == "" || strings.Contains(a.body, "10.0.0.7") {
		t.Errorf("%+v", p)
	}
}

func TestSameKeyAtTheSameTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.behind(true)
	var wg sync.WaitGroup
	ids := make([]string, 8)
	for i := range ids {
		wg.Go(func() {
			out, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}}, Wait: true}, "k")
			if err != nil || len(out.Episodes) != 1 {
				t.Errorf("%+v, %v", out, err)
				return
			}
			ids[i] = out.Episodes[0].ID + out.CorrelationID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("ids differ: %v", ids)
		}
	}
}

// A run of a rule and a dead letter take keys, too: the repetition changes nothing.
func TestKeysOfOperators(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.states[nora.Fact()] = memory.State{LastOrdinal: 10, Watermarks: map[string]uint64{}}
	key := []string{"Idempotency-Key", "k"}
	first := r.do(http.MethodPost, "/v1/rules/sleep/run", `{"user":"nora","agent":"assistant"}`, key...)
	r.store.states[nora.Fact()] = memory.State{LastOrdinal: 20, Watermarks: map[string]uint64{"sleep": 10}}
	if again := r.do(http.MethodPost, "/v1/rules/sleep/run", `{"user":"nora","agent":"assistant"}`, key...); again.body != first.body || len(r.publisher.sent()) != 1 {
		t.Errorf("run %s, then %s; %d published", first.body, again.body, len(r.publisher.sent()))
	}
	if p := r.do(http.MethodPost, "/v1/rules/sleep/run", `{"user":"bob"}`, key...).problem(t); p.Code != api.CodeIdempotencyMismatch {
		t.Errorf("another scope: %+v", p)
	}
}

// A command that is not done in time has a token: a read with it waits for the outcome.
func TestTokenOfAPendingCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config, _ *Deps) { c.Wait, c.Fresh = time.Millisecond, time.Millisecond })
	out, err := r.client.Remember(t.Context(), api.Remember{Scope: noraBody, Text: "Nora has a cat."}, "")
	if err != nil || out.Status != statusAccepted || out.At == "" {
		t.Fatalf("%+v, %v", out, err)
	}
	for _, want := range []string{statusAccepted, statusDone} {
		state, err := r.client.WriteState(t.Context(), out.At)
		facts := r.do(http.MethodGet, "/v1/facts?user=nora&at="+out.At, "")
		if err != nil || state.Status != want || strings.Contains(facts.body, `"stale":true`) != (want == statusAccepted) {
			t.Errorf("%+v, %v, facts %s; want %s", state, err, facts.body, want)
		}
		r.store.outcomes[nora.Project+"|"+out.CorrelationID] = []events.Outcome{{CorrelationID: out.CorrelationID, Rule: memory.RuleCommand, Results: []events.Result{}}}
	}
}
