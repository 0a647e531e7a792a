package query

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

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
