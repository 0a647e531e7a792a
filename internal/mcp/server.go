package mcp

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pkg/api"
	"palimpsest/pkg/client"
	"palimpsest/pkg/scope"
)

// Memory is what tools ask of the native API. A *client.Client implements it.
type Memory interface {
	Search(context.Context, api.Search) (api.Found, error)
	Assemble(context.Context, api.ContextQuery) (api.Context, error)
	Remember(ctx context.Context, r api.Remember, key string) (api.Written, error)
	Correct(ctx context.Context, id string, revision uint64, body api.Correct) (api.Written, error)
	Confirm(ctx context.Context, id string, revision uint64) (api.Written, error)
	Delete(ctx context.Context, id string, revision uint64) (api.Written, error)
	WeakFacts(ctx context.Context, sel scope.Selector, limit int, cursor string) (api.WeakPage, error)
	Explain(ctx context.Context, id string) (api.Explanation, error)
	Entity(ctx context.Context, sel scope.Selector, name string) (api.EntityInfo, error)
	Stats(ctx context.Context, sel scope.Selector) (api.Stats, error)
	Ledger(ctx context.Context, sel scope.Selector, each bool) (api.Ledger, error)
	Recent(ctx context.Context, sel scope.Selector, l client.ListEpisodes) (api.EpisodePage, error)
}

// Config is what a server knows besides its memory.
type Config struct {
	Version string
	// Default is the scope of calls that name none.
	Default api.Scope
	// Log receives panics of handlers.
	Log *slog.Logger
}

// server implements the tools, resources and prompts.
type server struct {
	memory Memory
	config Config
}

// cache keeps the schemas of tools, which are the same for all servers.
var cache = sdk.NewSchemaCache()

// New returns a server whose tools use memory.
func New(memory Memory, config Config) *sdk.Server {
	s := &server{memory: memory, config: config}
	out := sdk.NewServer(&sdk.Implementation{Name: "palimpsest", Title: "Palimpsest", Version: config.Version}, &sdk.ServerOptions{
		Instructions: s.instructions(),
		SchemaCache:  cache,
		// The lists of tools, resources and prompts never change.
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}, Prompts: &sdk.PromptCapabilities{},
		},
		// Answers hold what is known of one user.
		SetCacheable: func(_ context.Context, _ sdk.Request, c *sdk.Cacheable) { c.CacheScope = "private" },
	})
	s.addReads(out)
	s.addWrites(out)
	s.addSessions(out)
	s.addPrompts(out)
	out.AddReceivingMiddleware(s.recovered)
	return out
}

const instructions = "Palimpsest is a long-term memory. Call search_memory before you answer what may depend on earlier conversations. " +
	"Call remember_fact when you learn something lasting, as one self-contained sentence. " +
	"When something known turns out to be wrong or outdated, call correct_fact or forget with the id that search_memory returned."

func (s *server) instructions() string {
	if d := s.config.Default; d.User != "" {
		return instructions + " Calls that name no user concern " + quoted(d.User) + "."
	}
	return instructions
}

// recovered keeps a panic from ending the process: the SDK runs each request on
// a goroutine of its own, where net/http does not recover.
func (s *server) recovered(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (res sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.config.Log.ErrorContext(ctx, "mcp: handler panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
				res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the request could not be answered"}
			}
		}()
		return next(ctx, method, req)
	}
}
