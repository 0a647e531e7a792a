package query

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var noraBody = api.Scope{User: "nora", Agent: "assistant", Session: "s1"}

func TestRecord(t *testing.T) {
	t.Parallel()
	full := scope.Scope{Project: "default", User: "nora", Agent: "assistant", Session: "s1"}
	for _, tc := range []struct {
		name, messages string
		want           []events.EpisodeRecorded
	}{
		{"string", `"I moved to Oslo."`, []events.EpisodeRecorded{{Scope: full, Role: "user", Content: "I moved to Oslo."}}},
		{"one", `{"content":"Noted.","role":"assistant"}`, []events.EpisodeRecorded{{Scope: full, Role: "assistant", Content: "Noted."}}},
		{"many", `[{"id":"m1","content":"a","source_node":"web","metadata":{"k":[1]},"mode":"backfill"},
		  {"content":"b","timestamp":1767225600},{"content":"c","timestamp":"2026-01-01T01:00:00+01:00","role":"tool"}]`,
			[]events.EpisodeRecorded{
				{Scope: full, Role: "user", Content: "a", SourceNode: "web", Metadata: map[string]any{"k": []any{1.0}}, Mode: "backfill"},
				{Scope: full, Role: "user", Content: "b", Timestamp: events.Timestamp{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}},
				{Scope: full, Role: "tool", Content: "c", Timestamp: events.Timestamp{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}},
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			a := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","agent":"assistant","session":"s1","messages":`+tc.messages+`}`)
			out := into[api.Written](t, a, http.StatusAccepted)
			var got []events.EpisodeRecorded
			for i, s := range r.publisher.sent() {
				got = append(got, s.p.(events.EpisodeRecorded))
				if s.meta.ID != out.Episodes[i].ID || s.meta.Source != source || s.meta.CorrelationID != out.CorrelationID {
					t.Errorf("meta %+v, answer %+v", s.meta, out)
				}
			}
			same := cmp.Comparer(func(a, b events.Timestamp) bool { return a.Equal(b.Time) })
			if diff := cmp.Diff(tc.want, got, same); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
			if out.Status != "accepted" || out.At == "" || len(out.Warnings) != 0 {
				t.Errorf("%+v", out)
			}
			if r.listener.asked != 0 || r.embedder.calls != 0 {
				t.Error("recording listens or embeds")
			}
		})
	}
}

func TestRecordTakesAnyContentType(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, contentType := range []string{"", "application/x-www-form-urlencoded", "text/plain", "application/json; charset=utf-8", "application/octet-stream"} {
		a := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":"hello"}`, "Content-Type", contentType)
		if a.status != http.StatusAccepted {
			t.Errorf("%q: %d %s", contentType, a.status, a.body)
		}
	}
}

// behind stands for the pipeline: it settles each episode once it is recorded,
// and announces it if told to.
func (r *rig) behind(announce bool) {
	r.publisher.hook = func(_ context.Context, m events.Meta, p events.Payload) error {
		e, ok := p.(events.EpisodeRecorded)
		if !ok {
			return nil
		}
		go func() {
			o := events.Outcome{CorrelationID: m.CorrelationID, Rule: "turn", EpisodeIDs: []string{m.ID}, Revision: 1, Results: []events.Result{
				{Event: events.ChangeAdd, DeltaID: "d" + m.ID, FactID: "f", Revision: 1, Memory: e.Content, Reason: events.ReasonNew},
			}}
			r.store.settle(e.Scope.Project, o)
			if announce {
				r.listener.announce(o)
			}
		}()
		return nil
	}
}

func TestRecordWaits(t *testing.T) {
	t.Parallel()
	for _, announce := range []bool{true, false} {
		t.Run(fmt.Sprintf("announced=%v", announce), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.behind(announce)
			out, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}, {Content: "b"}}, Wait: true}, "")
			if err != nil || out.Status != "done" || len(out.Results) != 2 || out.Results[0].Rule != "turn" {
				t.Fatalf("%+v, %v", out, err)
			}
			if n := r.listener.listening(); n != 0 {
				t.Errorf("%d listeners are left", n)
			}
		})
	}
}

func TestRecordWaitsByParameter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.behind(true)
	out := into[api.Written](t, r.do(http.MethodPost, "/v1/episodes?wait=true", `{"user":"nora","messages":"a"}`), http.StatusOK)
	if len(out.Results) != 1 {
		t.Errorf("%+v", out)
	}
}

func TestRecordTellsOfSkippedRanges(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.publisher.hook = func(_ context.Context, m events.Meta, _ events.Payload) error {
		r.store.settle("default", events.Outcome{CorrelationID: m.CorrelationID, Rule: "turn", EpisodeIDs: []string{m.ID}, Skipped: "poison"})
		return nil
	}
	out, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{ID: "m1", Content: "a"}}, Wait: true}, "")
	if err != nil || out.Status != "done" || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "rule turn skipped m1: poison") {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestRecordGivesUpWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	start := time.Now()
	body := api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}}, Wait: true, Timeout: 0.05}
	out, err := r.client.Record(t.Context(), body, "k")
	if err != nil || out.Status != "accepted" || len(out.Episodes) != 1 || out.Results != nil {
		t.Fatalf("%+v, %v", out, err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	// It is done by the time the caller asks again.
	r.store.settle("default", events.Outcome{CorrelationID: out.CorrelationID, Rule: "turn", EpisodeIDs: []string{out.Episodes[0].ID}})
	again, err := r.client.Record(t.Context(), body, "k")
	if err != nil || again.Status != "done" || again.CorrelationID != out.CorrelationID || again.Episodes[0].ID != out.Episodes[0].ID {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestRecordSurvivesTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.fail(errDown)
	out, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{Content: "secret words"}}, Wait: true, Timeout: 0.02}, "")
	if err != nil || out.Status != "accepted" {
		t.Errorf("%+v, %v", out, err)
	}
	if logs := r.logs.String(); strings.Contains(logs, "secret") || !strings.Contains(logs, "outcome could not be read") {
		t.Errorf("logs: %s", logs)
	}
}

// A message whose id is known was consolidated under the request that recorded
// it first.
func TestRecordWaitsForKnownMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := noraBody.In("default")
	r.store.put(memory.Episode{ID: "m1", Source: source, Scope: full, Role: events.RoleUser, Mode: events.ModePersistent, Content: "a", CorrelationID: "earlier"})
	r.store.settle("default", events.Outcome{CorrelationID: "earlier", Rule: "turn", EpisodeIDs: []string{"m1"}, Results: []events.Result{{Event: events.ChangeAdd}}})
	out, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{ID: "m1", Content: "a"}}, Wait: true}, "")
	if err != nil || out.Status != "done" || len(out.Results) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestRecordDoesNotWaitInVain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *Config, d *Deps) { d.Rules = []memory.Rule{{ID: "sleep", Enabled: true}} })
	out, err := r.client.Record(t.Context(), api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}}, Wait: true}, "")
	if err != nil || out.Status != "accepted" || r.listener.asked != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestRecordCallerGoesAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.publisher.hook = func(context.Context, events.Meta, events.Payload) error { cancel(); return nil }
	_, err := r.client.Record(ctx, api.Record{Scope: noraBody, Messages: api.Messages{{Content: "a"}}, Wait: true}, "")
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	deadline := time.After(3 * time.Second)
	for r.listener.listening() > 0 {
		select {
		case <-deadline:
			t.Fatal("the waiter is left")
		case <-time.After(time.Millisecond):
		}
	}
}

func TestRecordPublishFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		err    error
		status int
		code   string
	}{
		{"down", errDown, 503, api.CodeStreamUnavailable},
		{"backlog", fmt.Errorf("%w: 100000 messages", pipeline.ErrBacklog), 429, api.CodeRateLimited},
		{"too large", pipeline.Reject(events.CodeTooLarge, "", errDown), 413, api.CodeBodyTooLarge},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			var n atomic.Int32
			r.publisher.hook = func(context.Context, events.Meta, events.Payload) error {
				if n.Add(1) == 2 {
					return tc.err
				}
				return nil
			}
			a := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":[{"content":"a"},{"content":"b"},{"content":"c"}]}`)
			p := a.problem(t)
			if p.Status != tc.status || p.Code != tc.code || p.Field != "messages[1]" || strings.Contains(a.body, "10.0.0.7") {
				t.Errorf("%+v", p)
			}
			if (a.header.Get("Retry-After") != "") != (tc.status == 503 || tc.status == 429) {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
			if n := len(r.publisher.sent()); n != 1 {
				t.Errorf("%d were published", n)
			}
		})
	}
}

func TestRecordListenerDown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.listener.err = errDown
	p := r.do(http.MethodPost, "/v1/episodes", `{"user":"nora","messages":"a","wait":true}`).problem(t)
	if p.Code != api.CodeStreamUnavailable || len(r.publisher.sent()) != 0 {
		t.Errorf("%+v", p)
	}
}

func TestEndSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"s1", "a/../b", "..", ".", "*", ">", "%", "_", "s p", "😀", "a.b"} {
		out, err := r.client.EndSession(t.Context(), api.Scope{User: "nora", Session: id}, "")
		if err != nil || out.Status != "accepted" {
			t.Fatalf("%q: %+v, %v", id, out, err)
		}
		all := r.publisher.sent()
		got := all[len(all)-1].p.(events.SessionEnded)
		if got.Scope != (scope.Scope{Project: "default", User: "nora", Session: id}) || got.Cause != events.EndExplicit {
			t.Errorf("%q: %+v", id, got)
		}
	}
	for body, field := range map[string]string{
		`{"user":"nora","session":"s2"}`: "session", `{"cause":"idle"}`: "cause", `{"cause":"x"}`: "cause", ``: "body", `{"user":7}`: "user",
	} {
		if p := r.do(http.MethodPost, "/v1/sessions/s1/end", body).problem(t); p.Status != 400 || p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if _, err := r.client.EndSession(t.Context(), api.Scope{User: "nora"}, ""); err == nil {
		t.Error("a session without a name ends")
	}
}
