package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/scope"
)

// model is a client of MCP, as an assistant has one.
type model struct {
	t       *testing.T
	session *sdk.ClientSession
}

// modelOf connects a client over a transport.
func modelOf(t *testing.T, over sdk.Transport) model {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), over, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return model{t, session}
}

// overHTTP is a client of the endpoint whose calls concern who.
func (i *instance) overHTTP(t *testing.T, who scope.Scope) model {
	t.Helper()
	query := url.Values{"project": {who.Project}, "user": {who.User}, "agent": {who.Agent}, "session": {who.Session}}
	return modelOf(t, &sdk.StreamableClientTransport{Endpoint: i.HTTP + "/mcp?" + query.Encode()})
}

// overStdio is a client of the command whose calls concern who.
func (i *instance) overStdio(t *testing.T, who scope.Scope) model {
	t.Helper()
	args := i.remote("mcp", "--user", who.User, "--agent", who.Agent, "--session", who.Session)
	return modelOf(t, &sdk.CommandTransport{Command: exec.Command(program, args...)})
}

type object = map[string]any

// call calls a tool and decodes its answer; problem is the text of one that
// failed.
func (m model) call(tool string, args object, into any) (problem string) {
	m.t.Helper()
	res, err := m.session.CallTool(m.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		m.t.Fatalf("%s: %v", tool, err)
	}
	if res.IsError {
		return res.Content[0].(*sdk.TextContent).Text
	}
	text, err := json.Marshal(res.StructuredContent)
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		m.t.Fatalf("%s: %v: %s", tool, err, text)
	}
	return ""
}

// must is call for one that may not fail.
func (m model) must(tool string, args object, into any) {
	m.t.Helper()
	if problem := m.call(tool, args, into); problem != "" {
		m.t.Fatalf("%s: %s", tool, problem)
	}
}

// fact is what tools tell of a fact.
type fact struct {
	ID, Text, User, Agent string
	Revision              uint64
	Confirmed             bool
}

// finds returns the facts that a search finds.
func (m model) finds(args object) (facts []fact) {
	m.t.Helper()
	var found struct {
		Results []struct{ Fact fact }
	}
	args["types"] = []string{"fact"}
	m.must("search_memory", args, &found)
	for _, h := range found.Results {
		facts = append(facts, h.Fact)
	}
	return facts
}

// modelsRemember: the tools do the same over both transports.
func modelsRemember(t *testing.T, i *instance) {
	for name, over := range map[string]func(*testing.T, scope.Scope) model{"http": i.overHTTP, "stdio": i.overStdio} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			who := i.person("ada/l. 🦊 " + name)
			who.Session = "s/1 ?#%"
			i := i.in(t)
			i.say(who, "My name is Ada.", "I live in Oslo.")
			i.settled(of(who), 2)
			m := over(t, who)
			m.changes(who)
			m.reads(who)
			stranger := over(t, i.person("bob"))
			if found := stranger.finds(object{"query": "Bergen"}); len(found) > 0 {
				t.Errorf("a stranger finds %+v", found)
			}
			other := who
			other.Project += "-other"
			id := m.finds(object{"query": "Bergen"})[0].ID
			if problem := i.overHTTP(t, other).call("explain_fact", object{"id": id}, nil); !strings.Contains(problem, "no such fact") {
				t.Errorf("another project: %q", problem)
			}
		})
	}
}

// changes states, corrects, confirms and forgets facts.
func (m model) changes(who scope.Scope) {
	m.t.Helper()
	var done struct {
		Status, Event string
		Fact          fact
	}
	m.must("remember_fact", object{"text": "Ada plays chess."}, &done)
	chess := done.Fact
	if done.Status != "done" || done.Event != "ADD" || chess.User != who.User || chess.Agent != who.Agent {
		m.t.Errorf("remember_fact: %+v", done)
	}
	m.must("forget", object{"id": chess.ID, "revision": chess.Revision}, &done)
	for _, f := range m.finds(object{"query": "chess"}) {
		if f.ID == chess.ID {
			m.t.Errorf("forgotten and found: %+v", f)
		}
	}
	for tool, args := range map[string]object{"forget": {}, "confirm_fact": {}, "correct_fact": {"text": "x"}} {
		args["id"] = chess.ID
		if problem := m.call(tool, args, nil); !strings.Contains(problem, "no such fact") {
			m.t.Errorf("%s of what is forgotten: %q", tool, problem)
		}
	}
	found := m.finds(object{"query": "where does Ada live?"})
	at := -1
	for n, f := range found {
		if strings.Contains(f.Text, "Oslo") {
			at = n
		}
	}
	if at < 0 {
		m.t.Fatalf("found: %+v", found)
	}
	oslo := found[at]
	m.must("correct_fact", object{"id": oslo.ID, "text": "Ada lives in Bergen.", "object": "Bergen", "revision": oslo.Revision}, &done)
	if !strings.Contains(done.Fact.Text, "Bergen") {
		m.t.Errorf("correct_fact: %+v", done)
	}
	if problem := m.call("confirm_fact", object{"id": done.Fact.ID, "revision": done.Fact.Revision + 7}, nil); !strings.Contains(problem, "Bergen") {
		m.t.Errorf("another revision: %q", problem)
	}
	m.must("confirm_fact", object{"id": done.Fact.ID}, &done)
	if !done.Fact.Confirmed {
		m.t.Errorf("confirm_fact: %+v", done)
	}
}

// reads explains, counts, and reads the resources and a prompt.
func (m model) reads(who scope.Scope) {
	m.t.Helper()
	var why struct {
		Fact     fact
		Versions []fact
	}
	m.must("explain_fact", object{"id": m.finds(object{"query": "Bergen"})[0].ID}, &why)
	if !why.Fact.Confirmed || len(why.Versions) == 0 {
		m.t.Errorf("explain_fact: %+v", why)
	}
	var stats struct {
		Balanced bool
		Rules    []struct{ Accepted int }
	}
	m.must("memory_stats", nil, &stats)
	if !stats.Balanced || len(stats.Rules) == 0 || stats.Rules[0].Accepted != 2 {
		m.t.Errorf("memory_stats: %+v", stats)
	}
	if problem := m.call("search_memory", object{"query": "x", "kinds": []string{"gossip"}}, nil); !strings.Contains(problem, "gossip") {
		m.t.Errorf("unknown kind: %q", problem)
	}
	var list struct {
		Sessions []struct{ Session, URI string }
	}
	m.resource("palimpsest://sessions", &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Session != who.Session {
		m.t.Fatalf("sessions: %+v", list)
	}
	var one struct{ Messages []struct{ Content string } }
	m.resource(list.Sessions[0].URI, &one)
	if len(one.Messages) != 2 || one.Messages[0].Content != "My name is Ada." {
		m.t.Errorf("messages: %+v", one)
	}
	prompt, err := m.session.GetPrompt(m.t.Context(), &sdk.GetPromptParams{Name: "recall", Arguments: map[string]string{"topic": "Bergen"}})
	if err != nil || !strings.Contains(prompt.Messages[0].Content.(*sdk.TextContent).Text, "Ada lives in Bergen.") {
		m.t.Errorf("prompt: %+v, %v", prompt, err)
	}
}

func (m model) resource(uri string, into any) {
	m.t.Helper()
	res, err := m.session.ReadResource(m.t.Context(), &sdk.ReadResourceParams{URI: uri})
	if err != nil {
		m.t.Fatalf("%s: %v", uri, err)
	}
	if err := json.Unmarshal([]byte(res.Contents[0].Text), into); err != nil {
		m.t.Fatalf("%s: %v", uri, err)
	}
}

// webPagesUseNoTools: the endpoint refuses what the rest of the API refuses.
func webPagesUseNoTools(t *testing.T, i *instance) {
	for _, tc := range []struct{ host, origin string }{{"evil.example", ""}, {"", "http://evil.example"}, {"", "null"}} {
		const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.HTTP+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if tc.host != "" {
			r.Host = tc.host
		}
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%+v: %s", tc, res.Status)
		}
	}
}

// TestModelsAreToldThatTheServerIsAway: the command starts without it, and tools
// answer in words.
func TestModelsAreToldThatTheServerIsAway(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := &instance{t: t, HTTP: "http://" + l.Addr().String()}
	_ = l.Close()
	m := away.overStdio(t, person("nora"))
	for tool, args := range map[string]object{"search_memory": {"query": "x"}, "remember_fact": {"text": "x"}, "memory_stats": {}} {
		if problem := m.call(tool, args, nil); !strings.Contains(problem, "cannot be reached") || !strings.Contains(problem, "palimpsest up") {
			t.Errorf("%s: %q", tool, problem)
		}
	}
}
