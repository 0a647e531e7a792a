package query

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// obey stands for decider and consolidator: it settles each command with what
// result makes of it.
func (r *rig) obey(result func(events.CommandRequested) events.Outcome) {
	r.publisher.hook = func(_ context.Context, m events.Meta, p events.Payload) error {
		if c, ok := p.(events.CommandRequested); ok {
			o := result(c)
			o.CorrelationID, o.Rule, o.Revision = m.CorrelationID, memory.RuleCommand, 7
			r.store.settle(c.Scope.Project, o)
			r.listener.announce(o)
		}
		return nil
	}
}

func changed(event events.Change, id string) events.Outcome {
	return events.Outcome{Results: []events.Result{{Event: event, FactID: id, DeltaID: "d", Revision: 2, Reason: events.ReasonRequested}}}
}

func (r *rig) command(t *testing.T) events.CommandRequested {
	t.Helper()
	all := r.publisher.sent()
	if len(all) == 0 {
		t.Fatal("nothing was published")
	}
	last := all[len(all)-1]
	c, ok := last.p.(events.CommandRequested)
	if !ok {
		t.Fatalf("published %T", last.p)
	}
	if want := events.HashID(append([]string{string(c.Kind())}, c.Identity()...)...); last.meta.ID != want || last.meta.CorrelationID != c.RequestID {
		t.Errorf("meta %+v", last.meta)
	}
	if c.Actor != "api:anonymous" || !c.At.Equal(noon) {
		t.Errorf("%+v", c)
	}
	return c
}

func TestRemember(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.obey(func(c events.CommandRequested) events.Outcome {
		r.store.facts = append(r.store.facts, fact1("new", 1, c.Candidate.Text))
		return changed(events.ChangeAdd, "new")
	})
	r.store.states[nora] = memory.State{Incarnation: 3}
	body := `{"user":"nora","agent":"assistant","session":"s1","text":" Nora keeps bees. ","category":"habit","confidence":0.5,"event_time":"2026-01-01T00:00:00Z","metadata":{"k":"v"}}`
	out := into[api.Written](t, r.do(http.MethodPost, "/v1/facts", body), http.StatusCreated)
	if out.Status != "done" || out.Fact == nil || out.Fact.Text != "Nora keeps bees." || out.Results[0].ID != "new" || out.At == "" {
		t.Errorf("%+v", out)
	}
	c := r.command(t)
	want := events.CommandRequested{
		Header:     events.Header{Scope: nora, Incarnation: 3},
		CommandRef: events.CommandRef{RequestID: out.CorrelationID, Op: events.OpRemember},
		Actor:      "api:anonymous", Session: "s1", At: noon,
		Candidate: &events.Candidate{
			ID: events.HashID(out.CorrelationID, "candidate"), Kind: events.FactSemantic, Category: "habit", Text: "Nora keeps bees.",
			EvidenceQuote: "Nora keeps bees.", Confidence: 0.5, Explicit: true, Sensitivity: "none", Cardinality: "many",
			SourceRole: "operator", EventTime: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), SessionIDs: []string{"s1"},
			Metadata: map[string]any{"k": "v"}, Extractor: "api@v1", RuleID: "api",
		},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	if r.embedder.calls != 0 || r.listener.listening() != 0 {
		t.Error("it embeds, or a listener is left")
	}
}

func TestRememberKnownIsNotCreated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.obey(func(events.CommandRequested) events.Outcome { return changed(events.ChangeNone, "") })
	if a := r.do(http.MethodPost, "/v1/facts", `{"user":"nora","text":"x"}`); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	r.obey(func(events.CommandRequested) events.Outcome { return events.Outcome{} })
	if a := r.do(http.MethodPost, "/v1/facts", `{"user":"nora","text":"x"}`); a.status != 200 {
		t.Errorf("without results: %d %s", a.status, a.body)
	}
}

func TestCommandsOnFacts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	known := fact1("f", 1, "Nora lives in Bergen.")
	known.Subject, known.Predicate, known.Object, known.Metadata = "Nora", "lives_in", "Bergen", map[string]any{"k": "v"}
	r.store.facts = []store.Fact{known, closed(fact1("gone", 4, "gone"))}
	r.obey(func(c events.CommandRequested) events.Outcome { return changed(events.ChangeUpdate, c.FactID) })
	for _, tc := range []struct {
		op      events.CommandOp
		id      string
		call    func() (api.Written, error)
		ifMatch map[string]uint64
	}{
		{events.OpCorrect, "f", func() (api.Written, error) {
			return r.client.Correct(t.Context(), "f", 1, api.Correct{Text: "Nora lives in Oslo.", Object: "Oslo"})
		}, map[string]uint64{"f": 1}},
		{events.OpConfirm, "f", func() (api.Written, error) { return r.client.Confirm(t.Context(), "f", 0) }, nil},
		{events.OpRestore, "gone", func() (api.Written, error) { return r.client.Restore(t.Context(), "gone", 4) }, map[string]uint64{"gone": 4}},
		{events.OpDelete, "f", func() (api.Written, error) { return r.client.Delete(t.Context(), "f", 0) }, nil},
	} {
		out, err := tc.call()
		if err != nil || out.Status != "done" || out.Fact == nil || out.Fact.ID != tc.id {
			t.Fatalf("%s: %+v, %v", tc.op, out, err)
		}
		c := r.command(t)
		if c.Op != tc.op || c.FactID != tc.id || c.Scope != nora || !cmp.Equal(c.IfMatch, tc.ifMatch) {
			t.Errorf("%s: %+v", tc.op, c)
		}
		if tc.op != events.OpCorrect {
			continue
		}
		got := c.Candidate
		if got.Text != "Nora lives in Oslo." || got.Object != "Oslo" || got.Subject != "Nora" || got.Category != "biography" ||
			got.Metadata["k"] != "v" || !slices.Equal(got.Replaces, []string{"f"}) {
			t.Errorf("candidate %+v", got)
		}
	}
	for _, path := range []string{"/v1/facts/gone/confirm", "/v1/facts/none/confirm", "/v1/facts/f/confirm?project=rival"} {
		if p := r.do(http.MethodPost, path, "").problem(t); p.Status != 404 {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestConflict(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.facts = []store.Fact{fact1("f", 5, "as it is by now")}
	r.obey(func(c events.CommandRequested) events.Outcome {
		o := changed(events.ChangeNone, "")
		o.Conflict = "f is at revision 5"
		return o
	})
	for _, tc := range []struct{ ifMatch, field string }{{`"3"`, "If-Match"}, {"", "id"}} {
		p := r.do(http.MethodPost, "/v1/facts/f/correct", `{"text":"x"}`, "If-Match", tc.ifMatch).problem(t)
		if p.Status != 409 || p.Code != api.CodeFactConflict || p.Field != tc.field || p.Current == nil || p.Current.Revision != 5 {
			t.Errorf("%+v", p)
		}
	}
}

func TestCommandGivesUpWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config, _ *Deps) { c.Wait = 20 * time.Millisecond })
	r.store.facts = []store.Fact{fact1("f", 1, "x")}
	key := []string{"Idempotency-Key", "k"}
	out := into[api.Written](t, r.do(http.MethodDelete, "/v1/facts/f", "", key...), http.StatusAccepted)
	if out.Status != "accepted" || out.CorrelationID == "" {
		t.Errorf("%+v", out)
	}
	// By the time the caller asks again the fact is closed: that is the answer,
	// and no reason to find no fact.
	r.store.facts = []store.Fact{closed(fact1("f", 2, "x"))}
	o := changed(events.ChangeDelete, "f")
	o.CorrelationID = out.CorrelationID
	r.store.settle("default", o)
	again := into[api.Written](t, r.do(http.MethodDelete, "/v1/facts/f", "", key...), http.StatusOK)
	if again.Status != "done" || again.Results[0].Event != "DELETE" || again.Fact.ValidUntil == nil || len(r.publisher.sent()) != 1 {
		t.Errorf("%+v", again)
	}
}

func TestCommandNeedsItsDependencies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.facts = []store.Fact{fact1("f", 1, "x")}
	r.publisher.hook = func(context.Context, events.Meta, events.Payload) error { return errDown }
	if p := r.do(http.MethodPost, "/v1/facts/f/confirm", "").problem(t); p.Code != api.CodeStreamUnavailable || p.Status != 503 {
		t.Errorf("%+v", p)
	}
	r.store.fail(errDown)
	if p := r.do(http.MethodPost, "/v1/facts/f/confirm", "").problem(t); p.Code != api.CodeStoreUnavailable || p.Status != 503 {
		t.Errorf("%+v", p)
	}
	if n := r.listener.listening(); n != 0 {
		t.Errorf("%d listeners are left", n)
	}
}

// What a command changed is visible to a read that is given its token.
func TestReadYourCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.obey(func(events.CommandRequested) events.Outcome { return changed(events.ChangeAdd, "f") })
	out, err := r.client.Remember(t.Context(), api.Remember{Scope: api.Scope{User: "nora"}, Text: "x"}, "k")
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/facts?user=nora&at=" + out.At
	if page := into[api.FactPage](t, r.do(http.MethodGet, path, ""), 200); !page.Stale {
		t.Error("not stale")
	}
	r.store.facts = []store.Fact{fact1("f", 1, "x")}
	if a := r.do(http.MethodGet, "/v1/facts/f?at="+out.At, ""); a.status != 200 || a.header.Get("Palimpsest-Stale") != "true" {
		t.Errorf("%d %v", a.status, a.header)
	}
	r.store.states[scope.Scope{Project: "default", User: "nora"}] = memory.State{Revision: 7}
	if a := r.do(http.MethodGet, "/v1/facts/f?at="+out.At, ""); a.status != 200 || a.header["Palimpsest-Stale"] != nil {
		t.Errorf("%d %v", a.status, a.header)
	}
	if page := into[api.FactPage](t, r.do(http.MethodGet, path, ""), 200); page.Stale {
		t.Error("stale")
	}
}

// A buried command is answered at once with the reason and the status of its code,
// and likewise when it is repeated.
func TestRefusedCommandIsAnswered(t *testing.T) {
	t.Parallel()
	for skipped, want := range map[string]api.Problem{
		"invalid_field: candidate.confidence: 7 is outside [0,1]": {Status: 400, Code: api.CodeInvalidField, Detail: "candidate.confidence: 7 is outside [0,1]"},
		"body_too_large: the batch is too large":                  {Status: 413, Code: api.CodeBodyTooLarge, Detail: "the batch is too large"},
		"poison: failed 20 times":                                 {Status: 500, Code: api.CodeInternal, Detail: "the command was given up and is in the dead letters: failed 20 times"},
	} {
		r := newRig(t)
		r.obey(func(events.CommandRequested) events.Outcome { return events.Outcome{Skipped: skipped} })
		for range 2 {
			a := r.do(http.MethodPost, "/v1/facts", `{"user":"nora","text":"Nora keeps bees."}`, "Idempotency-Key", "k")
			if p := a.problem(t); p.Status != want.Status || p.Code != want.Code || p.Detail != want.Detail {
				t.Errorf("%s: %+v", skipped, p)
			}
		}
		if n := len(r.publisher.sent()); n != 1 {
			t.Errorf("%s: %d commands were published", skipped, n)
		}
	}
}
