// Package gemini asks models at endpoints that speak the format of the Gemini API.
//
// It uses no SDK: the official one links a gRPC stack, for 3 MB of the binary, to
// send one JSON request.
package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"palimpsest/internal/llm"
)

// DefaultBaseURL is that of the Gemini API.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/"

// Config says where the model is. BaseURL ends before v1beta; empty means
// [DefaultBaseURL].
type Config = llm.Client

// Provider implements [llm.Provider].
type Provider struct {
	cfg    Config
	client *http.Client
}

var _ llm.Provider = (*Provider)(nil)

// New returns a provider. It calls nothing.
func New(cfg Config) (*Provider, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if u, err := url.Parse(cfg.BaseURL); err != nil || u.Scheme == "" || u.Host == "" {
		return nil, fmt.Errorf("gemini: base URL %q is not http://host", cfg.BaseURL)
	}
	return &Provider{cfg: cfg, client: llm.NewHTTPClient(cfg.Timeout)}, nil
}

// Info implements [llm.Provider].
func (p *Provider) Info() llm.Info { return llm.Info{Provider: "gemini", Model: p.cfg.Model} }

// Modes implements [llm.Provider].
func (*Provider) Modes() []llm.Mode { return []llm.Mode{llm.ModeSchema, llm.ModePlain} }

// content is what one side says, in parts.
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

type part struct {
	Text    string `json:"text"`
	Thought bool   `json:"thought,omitempty"`
}

// request is the body of generateContent.
type request struct {
	System     content    `json:"systemInstruction"`
	Contents   []content  `json:"contents"`
	Generation generation `json:"generationConfig"`
}

type generation struct {
	Temperature float64 `json:"temperature"`
	MaxTokens   int     `json:"maxOutputTokens,omitempty"`
	MIMEType    string  `json:"responseMimeType,omitempty"`
	Schema      any     `json:"responseJsonSchema,omitempty"`
}

// response is the answer of generateContent.
type response struct {
	Candidates []struct {
		Content      content `json:"content"`
		FinishReason string  `json:"finishReason"`
	} `json:"candidates"`
	PromptFeedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage struct {
		Prompt     int `json:"promptTokenCount"`
		Cached     int `json:"cachedContentTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
}

// Ask implements [llm.Provider].
func (p *Provider) Ask(ctx context.Context, req llm.Request, mode llm.Mode) (llm.Reply, error) {
	body := request{
		System: content{Parts: []part{{Text: req.System}}}, Contents: []content{{Role: "user", Parts: []part{{Text: req.User}}}},
		Generation: generation{Temperature: p.cfg.Temperature, MaxTokens: req.MaxTokens},
	}
	if mode == llm.ModeSchema {
		body.Generation.MIMEType, body.Generation.Schema = "application/json", llm.Object(req.Schema)
	}
	res, err := p.generate(ctx, body)
	if err != nil {
		return llm.Reply{}, llm.Read(ctx, err)
	}
	return read(res)
}

func (p *Provider) generate(ctx context.Context, body request) (*response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	address := strings.TrimSuffix(p.cfg.BaseURL, "/") + "/v1beta/models/" + url.PathEscape(p.cfg.Model) + ":generateContent"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Goog-Api-Key", p.cfg.Key)
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // the transport has read it
	var out response
	return &out, json.NewDecoder(res.Body).Decode(&out)
}

// refusals are the reasons to end that say that the model will not answer.
var refusals = []string{"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"}

func read(res *response) (llm.Reply, error) {
	u := res.Usage
	reply := llm.Reply{
		Finish: llm.FinishStop, InputTokens: u.Prompt, CachedTokens: u.Cached, OutputTokens: u.Candidates + u.Thoughts,
	}
	if len(res.Candidates) == 0 {
		if res.PromptFeedback.BlockReason != "" {
			return reply, llm.ErrRefused
		}
		return reply, fmt.Errorf("%w: no candidate", llm.ErrMalformed)
	}
	candidate := res.Candidates[0]
	if slices.Contains(refusals, candidate.FinishReason) {
		return reply, llm.ErrRefused
	}
	if candidate.FinishReason == "MAX_TOKENS" {
		reply.Finish = llm.FinishLength
	}
	var text strings.Builder
	for _, part := range candidate.Content.Parts {
		if !part.Thought {
			text.WriteString(part.Text)
		}
	}
	if reply.Text = text.String(); strings.TrimSpace(reply.Text) == "" {
		return reply, fmt.Errorf("%w: it is empty", llm.ErrMalformed)
	}
	return reply, nil
}
