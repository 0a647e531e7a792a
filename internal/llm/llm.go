package llm

import (
	"context"
	"encoding/json"

	"palimpsest/pkg/scope"
)

// Model answers requests.
type Model interface {
	// Info is constant for the model's life.
	Info() Info
	// Complete asks once. An error wraps one of the sentinels of this package, or
	// is that of ctx. A Reply that comes with an error holds the tokens that were
	// spent. Safe for concurrent use.
	Complete(ctx context.Context, req Request) (Reply, error)
}

// Info names a model: llm:{model} is how deltas name their decider.
type Info struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Request is one question.
type Request struct {
	// Scope is the fact scope that the question is about. Its project pays.
	Scope scope.Scope
	// Identity says what is asked, where not all of User does: two requests of one
	// identity get one reply from a cache. Empty stands for User.
	Identity string
	// System is the instruction. It comes first and is the same from call to call,
	// so that providers can cache it.
	System string
	// User is what the instruction is applied to.
	User string
	// Schema is the JSON schema of an object that the reply must fit; nil asks for
	// text. Name is what the schema describes, in letters, digits and underscores.
	Schema json.RawMessage
	Name   string
	// MaxTokens bounds the reply; 0 means [DefaultMaxTokens].
	MaxTokens int
	// Accept, where it is not nil, reads a reply; its error makes it malformed. Only
	// a [Governor] calls it.
	Accept func(Reply) error
}

// DefaultMaxTokens bounds a reply where a request does not.
const DefaultMaxTokens = 2000

// Reply is what came back.
type Reply struct {
	// Text is the reply: JSON where the request has a schema and the model kept to
	// it, which [Items] does not take for granted.
	Text string `json:"text"`
	// Calls is how many calls the tokens were spent on; [Cached] counts them.
	Calls int `json:"calls,omitempty"`
	// InputTokens include the CachedTokens.
	InputTokens  int    `json:"input_tokens"`
	CachedTokens int    `json:"cached_tokens,omitempty"`
	OutputTokens int    `json:"output_tokens"`
	Finish       Finish `json:"finish"`
}

// Finish is why a reply ended.
type Finish string

// The reasons why replies end.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length" // cut off at the bound on its tokens
)

// Mode is how a reply that fits a schema is asked for.
type Mode string

// The modes, from the most to the least reliable.
const (
	ModeSchema Mode = "schema" // the endpoint holds the reply to the schema
	ModeTool   Mode = "tool"   // the reply is the arguments of a tool that must be called
	ModePlain  Mode = "plain"  // the instruction describes the schema
)

// Provider makes single calls to an endpoint.
type Provider interface {
	Info() Info
	// Modes lists the modes of the endpoint's wire format, the most reliable first,
	// [ModePlain] last. Not every endpoint that speaks the format takes them all.
	Modes() []Mode
	// Ask makes one call and does not retry it. In ModePlain it ignores the schema.
	// Errors and Reply are as those of [Model].
	Ask(ctx context.Context, req Request, mode Mode) (Reply, error)
}

// Object is a schema as SDKs take it that want its members.
func Object(schema json.RawMessage) map[string]any {
	var out map[string]any
	if json.Unmarshal(schema, &out) != nil {
		return nil // the schemas are ours, and tests read them
	}
	return out
}
