// Package anthropic asks models at endpoints that speak the messages format of
// Anthropic.
package anthropic

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"palimpsest/internal/llm"
)

// DefaultBaseURL is Anthropic's.
const DefaultBaseURL = "https://api.anthropic.com/"

// Config says where the model is. BaseURL ends before v1/messages; empty means
// [DefaultBaseURL].
type Config = llm.Client

// Provider implements [llm.Provider].
type Provider struct {
	cfg      Config
	messages anthropic.MessageService
}

var _ llm.Provider = (*Provider)(nil)

// New returns a provider. It calls nothing.
func New(cfg Config) (*Provider, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("anthropic: base URL %q names no host", cfg.BaseURL)
	}
	return &Provider{cfg: cfg, messages: anthropic.NewMessageService(
		option.WithBaseURL(strings.TrimSuffix(base.String(), "/")+"/"), option.WithAPIKey(cfg.Key),
		option.WithHTTPClient(llm.NewHTTPClient(cfg.Timeout)), option.WithMaxRetries(0),
		option.WithRequestTimeout(cfg.Timeout+time.Minute), // the client's bound comes first, and names what happened
	)}, nil
}

// Info implements [llm.Provider].
func (p *Provider) Info() llm.Info { return llm.Info{Provider: "anthropic", Model: p.cfg.Model} }

// Modes implements [llm.Provider].
func (*Provider) Modes() []llm.Mode { return []llm.Mode{llm.ModeTool, llm.ModePlain} }

// Ask implements [llm.Provider]. The instruction and the tool are marked for the
// provider's prompt cache.
func (p *Provider) Ask(ctx context.Context, req llm.Request, mode llm.Mode) (llm.Reply, error) {
	params := anthropic.MessageNewParams{
		Model: anthropic.Model(p.cfg.Model), MaxTokens: int64(req.MaxTokens), Temperature: param.NewOpt(p.cfg.Temperature),
		System:   []anthropic.TextBlockParam{{Text: req.System, CacheControl: anthropic.NewCacheControlEphemeralParam()}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(req.User))},
	}
	if mode == llm.ModeTool {
		params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(schemaOf(req), req.Name)}
		params.ToolChoice = anthropic.ToolChoiceParamOfTool(req.Name)
	}
	message, err := p.messages.New(ctx, params)
	if err != nil {
		return llm.Reply{}, llm.Read(ctx, err)
	}
	return read(message)
}

func schemaOf(req llm.Request) anthropic.ToolInputSchemaParam {
	out := anthropic.ToolInputSchemaParam{ExtraFields: map[string]any{}}
	for name, value := range llm.Object(req.Schema) {
		switch name {
		case "type":
		case "properties":
			out.Properties = value
		default:
			out.ExtraFields[name] = value
		}
	}
	return out
}

func read(message *anthropic.Message) (llm.Reply, error) {
	cached := message.Usage.CacheReadInputTokens
	reply := llm.Reply{
		InputTokens:  int(message.Usage.InputTokens + message.Usage.CacheCreationInputTokens + cached),
		CachedTokens: int(cached), OutputTokens: int(message.Usage.OutputTokens), Finish: llm.FinishStop,
	}
	switch message.StopReason {
	case "refusal":
		return reply, llm.ErrRefused
	case "max_tokens":
		reply.Finish = llm.FinishLength
	}
	var text strings.Builder
	for _, block := range message.Content {
		switch block.Type {
		case "text":
			text.WriteString(block.Text)
		case "tool_use": // the arguments are the reply; text before them is not
			reply.Text = string(block.Input)
			return reply, nil
		}
	}
	if reply.Text = text.String(); strings.TrimSpace(reply.Text) == "" {
		return reply, fmt.Errorf("%w: it is empty", llm.ErrMalformed)
	}
	return reply, nil
}
