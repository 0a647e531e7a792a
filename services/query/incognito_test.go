package query

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

func whispered(session, id, text string) memory.Episode {
	return memory.Episode{
		ID: id, Scope: scope.Scope{Project: "default", User: "nora", Session: session}, Content: text, Timestamp: noon, Mode: events.ModeIncognito,
	}
}

func inSession(session string) scope.Selector {
	user := "nora"
	return scope.Selector{Project: "default", User: &user, Session: &session}
}

// TestIncognitoIsBounded: by episodes of a session, by bytes in all, and by time.
func TestIncognitoIsBounded(t *testing.T) {
	t.Parallel()
	in := &incognito{}
	for n := range incognitoEpisodes + 5 {
		if err := in.add([]memory.Episode{whispered("s", fmt.Sprint(n), "hush")}, noon); err != nil {
			t.Fatal(err)
		}
	}
	got := in.within(inSession("s"), noon)
	if len(got) != incognitoEpisodes || got[0].ID != "5" || got[0].Ordinal != 6 {
		t.Errorf("%d episodes, the first %+v", len(got), got[0])
	}
	big := strings.Repeat("x", 1<<20)
	refused := 0
	for n := range 80 {
		if in.add([]memory.Episode{whispered("big", fmt.Sprint(n), big)}, noon.Add(time.Hour)) != nil {
			refused++
		}
	}
	if in.bytes > incognitoBytes || refused != 80-63 {
		t.Errorf("%d bytes, %d refused", in.bytes, refused)
	}
	if got := in.within(inSession("s"), noon.Add(incognitoLife)); len(got) != 0 {
		t.Errorf("%d episodes after their time", len(got))
	}
	in.forget(inSession("big"))
	if in.bytes != 0 || len(in.sessions) != 0 {
		t.Errorf("%d bytes of %d sessions are left", in.bytes, len(in.sessions))
	}
	if wide := (scope.Selector{Project: "default", All: true}); len(in.within(wide, noon)) != 0 {
		t.Error("a read without a session shows them")
	}
}

// TestIncognitoIsRefused where it could not be kept.
func TestIncognitoIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config, _ *Deps) { c.Incognito = true })
	for body, words := range map[string]string{
		`{"user":"a","messages":[{"content":"x","mode":"incognito"}]}`:                                  "session",
		`{"user":"a","session":"s","infer":false,"messages":[{"content":"x","mode":"incognito"}]}`:      "infer",
		`{"user":"a","session":"s","messages":[{"content":"x","mode":"incognito"},{"content":"open"}]}`: "all messages",
	} {
		p := r.do(http.MethodPost, "/v1/episodes", body).problem(t)
		if p.Status != 400 || p.Field != "messages[0].mode" || !strings.Contains(p.Detail, words) {
			t.Errorf("%s: %+v", body, p)
		}
	}
	if len(r.publisher.sent()) > 0 {
		t.Error("something is published")
	}
}
