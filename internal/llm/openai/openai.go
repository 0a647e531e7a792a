// Package openai asks models at endpoints that speak the chat completions format:
// OpenAI itself, and through its base URL Ollama, vLLM, LM Studio and Azure.
package openai

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"github.com/openai/openai-go/packages/param"
	"github.com/openai/openai-go/shared"

	"palimpsest/internal/llm"
)

// DefaultBaseURL is OpenAI's.
const DefaultBaseURL = "https://api.openai.com/v1/"

// Config says where the model is: any endpoint with chat completions. BaseURL ends before
// chat/completions; empty means [DefaultBaseURL]. That of Azure ends in /openai/v1/, or is
// the resource where APIVersion is set. The temperature is sent until the endpoint says
// that the model takes none.
type Config = llm.Client

// Provider implements [llm.Provider].
type Provider struct {
	cfg  Config
	chat openai.ChatCompletionService
	// hot: the model takes no temperature.
	hot atomic.Bool
	// legacy: the endpoint bounds replies by max_tokens.
	legacy atomic.Bool
}

var _ llm.Provider = (*Provider)(nil)

// New returns a provider. It calls nothing.
func New(cfg Config) (*Provider, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(cfg.BaseURL)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("openai: base URL %q names no host", cfg.BaseURL)
	}
	opts := []option.RequestOption{
		option.WithHTTPClient(llm.NewHTTPClient(cfg.Timeout)), option.WithMaxRetries(0),
	}
	if cfg.Key != "" {
		opts = append(opts, option.WithAPIKey(cfg.Key))
	}
	if cfg.APIVersion != "" {
		base = base.JoinPath("openai", "deployments", cfg.Model)
		opts = append(opts, option.WithQuery("api-version", cfg.APIVersion), option.WithHeaderDel("Authorization"), option.WithHeader("Api-Key", cfg.Key))
	}
	opts = append(opts, option.WithBaseURL(strings.TrimSuffix(base.String(), "/")+"/"))
	p := &Provider{cfg: cfg, chat: openai.NewChatCompletionService(opts...)}
	// Only the two services have the newer name; other endpoints read the older one.
	p.legacy.Store(cfg.APIVersion == "" && !strings.HasSuffix(base.Host, ".openai.com") && !strings.HasSuffix(base.Host, ".azure.com"))
	return p, nil
}

// Info implements [llm.Provider].
func (p *Provider) Info() llm.Info { return llm.Info{Provider: "openai", Model: p.cfg.Model} }

// Modes implements [llm.Provider].
func (*Provider) Modes() []llm.Mode { return []llm.Mode{llm.ModeSchema, llm.ModeTool, llm.ModePlain} }

// Ask implements [llm.Provider]. Models differ in two parameters, and an endpoint
// that takes no such parameter says so before it spends anything: the call is then
// made again without it.
func (p *Provider) Ask(ctx context.Context, req llm.Request, mode llm.Mode) (llm.Reply, error) {
	reply, err := p.ask(ctx, req, mode)
	for range 2 {
		switch {
		case llm.Mentions(err, "temperature") && p.hot.CompareAndSwap(false, true):
		case llm.Mentions(err, "max_tokens", "max_completion_tokens"):
			p.legacy.Store(!p.legacy.Load())
		default:
			return reply, err
		}
		reply, err = p.ask(ctx, req, mode)
	}
	return reply, err
}

func (p *Provider) ask(ctx context.Context, req llm.Request, mode llm.Mode) (llm.Reply, error) {
	done, err := p.chat.New(ctx, p.params(req, mode))
	if err != nil {
		return llm.Reply{}, llm.Read(ctx, err)
	}
	reply := llm.Reply{
		InputTokens: int(done.Usage.PromptTokens), OutputTokens: int(done.Usage.CompletionTokens),
		CachedTokens: int(done.Usage.PromptTokensDetails.CachedTokens), Finish: llm.FinishStop,
	}
	if len(done.Choices) == 0 {
		return reply, fmt.Errorf("%w: no choice", llm.ErrMalformed)
	}
	choice := done.Choices[0]
	if choice.Message.Refusal != "" || choice.FinishReason == "content_filter" {
		return reply, llm.ErrRefused
	}
	if choice.FinishReason == "length" {
		reply.Finish = llm.FinishLength
	}
	reply.Text = choice.Message.Content
	if calls := choice.Message.ToolCalls; len(calls) > 0 {
		reply.Text = calls[0].Function.Arguments
	}
	if strings.TrimSpace(reply.Text) == "" {
		return reply, fmt.Errorf("%w: it is empty", llm.ErrMalformed)
	}
	return reply, nil
}

func (p *Provider) params(req llm.Request, mode llm.Mode) openai.ChatCompletionNewParams {
	out := openai.ChatCompletionNewParams{
		Model:    p.cfg.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(req.System), openai.UserMessage(req.User)},
	}
	if !p.hot.Load() {
		out.Temperature = param.NewOpt(p.cfg.Temperature)
	}
	if p.legacy.Load() {
		out.MaxTokens = param.NewOpt(int64(req.MaxTokens))
	} else {
		out.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
	}
	switch mode {
	case llm.ModeSchema:
		out.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: req.Name, Schema: req.Schema, Strict: param.NewOpt(true)},
		}}
	case llm.ModeTool:
		out.Tools = []openai.ChatCompletionToolParam{{Function: shared.FunctionDefinitionParam{
			Name: req.Name, Parameters: llm.Object(req.Schema),
		}}}
		out.ToolChoice = openai.ChatCompletionToolChoiceOptionParamOfChatCompletionNamedToolChoice(
			openai.ChatCompletionNamedToolChoiceFunctionParam{Name: req.Name})
	case llm.ModePlain:
	}
	return out
}
