package mcp

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 4, 2, 12, 0, 0, 0, time.UTC)

// fakeMemory keeps what it is asked, and answers every call alike.
type fakeMemory struct {
	mu       sync.Mutex
	asked    []any
	err      error
	panics   bool
	episodes []api.Episode
}

var known = api.Fact{ID: "f", Revision: 3, Scope: api.Scope{User: "nora"}, Kind: "semantic", Text: "Nora lives in Oslo.", Confidence: 0.98765, ValidFrom: noon}

func (f *fakeMemory) ask(what ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.panics {
		panic("a fault of ours")
	}
	f.asked = append(f.asked, what...)
	return f.err
}

// last returns what was asked since the last time.
func (f *fakeMemory) last() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.asked
	f.asked = nil
	return out
}

func (f *fakeMemory) written(what ...any) (api.Written, error) {
	fact := known
	return api.Written{Status: "done", Results: []api.Result{{Event: "UPDATE", Reason: "corrected"}}, Fact: &fact}, f.ask(what...)
}

func (f *fakeMemory) Assemble(_ context.Context, q api.ContextQuery) (api.Context, error) {
	return api.Context{Context: "- Nora lives in Oslo. [f]", Degraded: []string{"vector"}}, f.ask(q)
}

func (f *fakeMemory) Search(_ context.Context, q api.Search) (api.Found, error) {
	fact := known
	episode := api.Episode{ID: "e", Scope: api.Scope{User: "nora", Session: "s"}, Role: "user", Content: "I live in Oslo.", Timestamp: noon}
	return api.Found{Degraded: []string{"vector"}, Results: []api.Hit{
		{Type: "fact", ID: "f", Score: 0.9, Text: fact.Text, Fact: &fact}, {Type: "episode", ID: "e", Score: 0.5, Text: episode.Content, Episode: &episode},
	}}, f.ask(q)
}

func (f *fakeMemory) Remember(_ context.Context, r api.Remember, key string) (api.Written, error) {
	return f.written(r, key)
}

func (f *fakeMemory) Correct(_ context.Context, id string, revision uint64, body api.Correct) (api.Written, error) {
	return f.written("correct", id, revision, body)
}

func (f *fakeMemory) Confirm(_ context.Context, id string, revision uint64) (api.Written, error) {
	return f.written("confirm", id, revision)
}

func (f *fakeMemory) Delete(_ context.Context, id string, revision uint64) (api.Written, error) {
	return f.written("delete", id, revision)
}

func (f *fakeMemory) WeakFacts(_ context.Context, sel scope.Selector, limit int, cursor string) (api.WeakPage, error) {
	due := noon.Add(time.Hour)
	return api.WeakPage{Facts: []api.WeakFact{{Fact: known, PrunedAt: &due}}, Next: "c"}, f.ask("weak", sel, limit, cursor)
}

func (f *fakeMemory) Explain(_ context.Context, id string) (api.Explanation, error) {
	return api.Explanation{
		Fact: known, Quote: "I live in Oslo", Versions: []api.Fact{known}, Entities: []api.Entity{{Name: "Oslo"}},
		Decisions: []api.Change{{Event: "ADD", Reason: "new", Rule: "turn", DecidedBy: "rules", AppliedAt: noon}},
	}, f.ask("explain", id)
}

func (f *fakeMemory) Entity(_ context.Context, sel scope.Selector, name string) (api.EntityInfo, error) {
	return api.EntityInfo{
		Entity: api.Entity{Name: "Fenwick", Type: "organization"}, Relations: []api.Relation{{Source: "user", Predicate: "work", Target: "Fenwick"}},
	}, f.ask("entity", sel, name)
}

func (f *fakeMemory) Stats(_ context.Context, sel scope.Selector) (api.Stats, error) {
	return api.Stats{Facts: 3, Orphans: 1, Kinds: map[string]uint64{}, Types: map[string]uint64{}, Edges: map[string]uint64{}}, f.ask("stats", sel)
}

func (f *fakeMemory) Ledger(_ context.Context, sel scope.Selector, each bool) (api.Ledger, error) {
	return api.Ledger{Balanced: true, Totals: []api.Account{{Rule: "turn", Accepted: 2, Consolidated: 2}}}, f.ask(sel, each)
}

func (f *fakeMemory) Recent(_ context.Context, sel scope.Selector, l client.ListEpisodes) (api.EpisodePage, error) {
	return api.EpisodePage{Episodes: f.episodes}, f.ask(sel, l)
}

// connect returns a session of the SDK's client with a server of memory.
func connect(t *testing.T, memory Memory, whose api.Scope) *sdk.ClientSession {
	t.Helper()
	here, there := sdk.NewInMemoryTransports()
	server, err := New(memory, Config{Version: "test", Default: whose, Log: slog.New(slog.DiscardHandler)}).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close(); _ = server.Wait() })
	return client
}

// call calls a tool and returns its text, and whether it is an error.
func call(t *testing.T, c *sdk.ClientSession, tool string, args any) (text string, failed bool) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s: content %v", tool, res.Content)
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}
