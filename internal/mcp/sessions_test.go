package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

func resource(t *testing.T, c *sdk.ClientSession, uri string, into any) error {
	t.Helper()
	res, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		return err
	}
	if got := res.Contents[0]; got.MIMEType != jsonType || got.URI != uri {
		t.Errorf("content %+v", got)
	}
	return json.Unmarshal([]byte(res.Contents[0].Text), into)
}

func TestSessions(t *testing.T) {
	t.Parallel()
	fox := api.Scope{User: "ada/l 🦊", Agent: "a&b=c+d", Session: "s/1 ../?#%"}
	plain := api.Scope{User: "nora", Session: "s2"}
	memory := &fakeMemory{episodes: []api.Episode{
		{ID: "4", Scope: fox, Role: "user", Content: "third", Timestamp: noon.Add(2 * time.Minute)},
		{ID: "3", Scope: plain, Role: "assistant", Content: "hello", Timestamp: noon.Add(time.Minute)},
		{ID: "2", Scope: api.Scope{User: "nora"}, Role: "user", Content: "of no session", Timestamp: noon},
		{ID: "1", Scope: fox, Role: "user", Content: "first", Timestamp: noon},
	}}
	c := connect(t, memory, api.Scope{User: "nora"})
	var list struct{ Sessions []Session }
	if err := resource(t, c, sessionsURI, &list); err != nil {
		t.Fatal(err)
	}
	want := []Session{
		{Session: fox.Session, User: fox.User, Agent: fox.Agent, Recent: 2, From: noon, To: noon.Add(2 * time.Minute), URI: sessionURI(fox)},
		{Session: "s2", User: "nora", Recent: 1, From: noon.Add(time.Minute), To: noon.Add(time.Minute), URI: "palimpsest://sessions/s2?user=nora"},
	}
	if diff := cmp.Diff(want, list.Sessions); diff != "" {
		t.Error(diff)
	}
	nora := "nora"
	if diff := cmp.Diff([]any{scope.Selector{User: &nora}, client.ListEpisodes{Limit: recent}}, memory.last()); diff != "" {
		t.Error(diff)
	}
	// Every listed address can be read, also with names that need escapes.
	var one struct{ Messages []Episode }
	if err := resource(t, c, list.Sessions[0].URI, &one); err != nil {
		t.Fatal(err)
	}
	if len(one.Messages) != 4 || one.Messages[0].Content != "first" {
		t.Errorf("messages %+v", one.Messages)
	}
	asked := scope.Selector{User: &fox.User, Agent: &fox.Agent, Session: &fox.Session}
	if diff := cmp.Diff([]any{asked, client.ListEpisodes{Limit: recent}}, memory.last()); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownResources(t *testing.T) {
	t.Parallel()
	memory := &fakeMemory{}
	c := connect(t, memory, api.Scope{})
	if list, err := c.ListResources(t.Context(), nil); err != nil || len(list.Resources) > 0 {
		t.Errorf("resources of nobody: %+v, %v", list, err)
	}
	if list, err := c.ListResourceTemplates(t.Context(), nil); err != nil || len(list.ResourceTemplates) != 2 {
		t.Errorf("templates: %+v, %v", list, err)
	}
	for uri, want := range map[string]string{
		"palimpsest://sessions/unknown?user=nora": "not found",
		"palimpsest://sessions?usr=nora":          "not found",
		"palimpsest://sessions/a/b?user=nora":     "not found",
		"palimpsest://facts":                      "not found",
		"file:///etc/passwd":                      "not found",
		"palimpsest://sessions":                   "no user is named",
	} {
		if err := resource(t, c, uri, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
