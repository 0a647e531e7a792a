// Package gemini asks models at endpoints that speak the format of the Gemini API.
package gemini

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genai"

	"palimpsest/internal/llm"
)

// DefaultBaseURL is that of the Gemini API.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/"

// Config names an endpoint and a model.
type Config struct {
	BaseURL     string // ends before v1beta; empty means [DefaultBaseURL]
	Model       string
	Key         string
	Temperature float64
	Timeout     time.Duration
}

// Provider implements [llm.Provider].
type Provider struct {
	cfg    Config
	client *genai.Client
}

var _ llm.Provider = (*Provider)(nil)

// New returns a provider. It calls nothing.
func New(cfg Config) (*Provider, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: cfg.Key, HTTPClient: llm.NewHTTPClient(cfg.Timeout),
		HTTPOptions: genai.HTTPOptions{BaseURL: cfg.BaseURL},
	})
	if err != nil {
		return nil, fmt.Errorf("gemini: %w", err)
	}
	return &Provider{cfg: cfg, client: client}, nil
}

// Info implements [llm.Provider].
func (p *Provider) Info() llm.Info { return llm.Info{Provider: "gemini", Model: p.cfg.Model} }

// Modes implements [llm.Provider].
func (*Provider) Modes() []llm.Mode { return []llm.Mode{llm.ModeSchema, llm.ModePlain} }

// Ask implements [llm.Provider].
func (p *Provider) Ask(ctx context.Context, req llm.Request, mode llm.Mode) (llm.Reply, error) {
	cfg := &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText(req.System, genai.RoleUser),
		Temperature:       genai.Ptr(float32(p.cfg.Temperature)),
		MaxOutputTokens:   int32(min(req.MaxTokens, 1<<20)),
	}
	if mode == llm.ModeSchema {
		cfg.ResponseMIMEType, cfg.ResponseJsonSchema = "application/json", llm.Object(req.Schema)
	}
	res, err := p.client.Models.GenerateContent(ctx, p.cfg.Model, genai.Text(req.User), cfg)
	if err != nil {
		return llm.Reply{}, llm.Read(ctx, err)
	}
	return read(res)
}

func read(res *genai.GenerateContentResponse) (llm.Reply, error) {
	reply := llm.Reply{Finish: llm.FinishStop}
	if u := res.UsageMetadata; u != nil {
		reply.InputTokens, reply.CachedTokens = int(u.PromptTokenCount), int(u.CachedContentTokenCount)
		reply.OutputTokens = int(u.CandidatesTokenCount + u.ThoughtsTokenCount)
	}
	if len(res.Candidates) == 0 {
		if res.PromptFeedback != nil && res.PromptFeedback.BlockReason != "" {
			return reply, llm.ErrRefused
		}
		return reply, fmt.Errorf("%w: no candidate", llm.ErrMalformed)
	}
	candidate := res.Candidates[0]
	switch candidate.FinishReason { //nolint:exhaustive // the others end a reply
	case genai.FinishReasonSafety, genai.FinishReasonProhibitedContent, genai.FinishReasonBlocklist,
		genai.FinishReasonSPII, genai.FinishReasonRecitation:
		return reply, llm.ErrRefused
	case genai.FinishReasonMaxTokens:
		reply.Finish = llm.FinishLength
	}
	var text strings.Builder
	if candidate.Content != nil {
		for _, part := range candidate.Content.Parts {
			if !part.Thought {
				text.WriteString(part.Text)
			}
		}
	}
	if reply.Text = text.String(); strings.TrimSpace(reply.Text) == "" {
		return reply, fmt.Errorf("%w: it is empty", llm.ErrMalformed)
	}
	return reply, nil
}
