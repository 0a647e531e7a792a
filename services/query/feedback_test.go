package query

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func TestFeedback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.store.facts = []store.Fact{fact1("f", 2, "Nora lives in Oslo.")}
	r.store.episodes = []memory.Episode{{ID: "e9", Scope: scope.Scope{Project: nora.Project, User: nora.User, Agent: nora.Agent, Session: "s"}}}
	r.obey(func(events.CommandRequested) events.Outcome { return changed(events.ChangeNone, "f") })
	answer := api.Scope{User: nora.User, Agent: nora.Agent}
	for _, tt := range []struct {
		in     api.Feedback
		fact   string
		rating events.Rating
	}{
		{api.Feedback{FactID: "f", Rating: "very_negative", Reason: "she moved"}, "f", events.Rating{Value: events.RatingVeryNegative, Reason: "she moved"}},
		{api.Feedback{Scope: answer, EpisodeID: "e9", Rating: "positive"}, "", events.Rating{Value: events.RatingPositive, EpisodeID: "e9"}},
	} {
		out, err := r.client.Feedback(t.Context(), tt.in)
		if err != nil || out.Status != "done" {
			t.Fatalf("%+v: %+v, %v", tt.in, out, err)
		}
		want := events.CommandRequested{
			Header:     events.Header{Scope: nora},
			CommandRef: events.CommandRef{RequestID: out.CorrelationID, Op: events.OpRate, Rating: &tt.rating},
			Actor:      "api:anonymous", FactID: tt.fact, At: noon,
		}
		sent := r.publisher.sent()
		if diff := cmp.Diff(events.Payload(want), sent[len(sent)-1].p); diff != "" {
			t.Errorf("command (-want +got):\n%s", diff)
		}
	}
	published := len(r.publisher.sent())
	for body, want := range map[string]struct {
		status int
		field  string
	}{
		`{"fact_id":"f"}`:                                                {400, "rating"},
		`{"fact_id":"f","rating":"POSITIVE"}`:                            {400, "rating"},
		`{"rating":"none"}`:                                              {400, "fact_id"},
		`{"fact_id":"f","episode_id":"e9","rating":"none"}`:              {400, "fact_id"},
		`{"fact_id":"unknown","rating":"none"}`:                          {404, ""},
		`{"episode_id":"e9","rating":"none","user":"zoe"}`:               {404, "episode_id"},
		`{"episode_id":"e9","rating":"none"}`:                            {400, "user"},
		`{"fact_id":"f","rating":"none","stars":5}`:                      {400, "stars"},
		`{"episode_id":"e8","rating":"none","user":"` + nora.User + `"}`: {404, "episode_id"},
	} {
		if p := r.do(http.MethodPost, "/v1/feedback", body).problem(t); p.Status != want.status || want.field != "" && p.Field != want.field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if p := r.do(http.MethodPost, "/v1/feedback?project=rival", `{"fact_id":"f","rating":"none"}`).problem(t); p.Status != http.StatusNotFound {
		t.Errorf("another project: %+v", p)
	}
	if n := len(r.publisher.sent()); n != published {
		t.Errorf("%d refused requests were published", n-published)
	}
}
