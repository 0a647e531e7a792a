// Package openai embeds texts at endpoints that speak OpenAI's embeddings format:
// OpenAI itself, and through its base URL Ollama, vLLM, LM Studio and others.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"github.com/openai/openai-go/packages/param"

	"palimpsest/internal/embed"
	"palimpsest/internal/llm"
)

// DefaultBaseURL is OpenAI's.
const DefaultBaseURL = "https://api.openai.com/v1/"

// The defaults of a [Config].
const (
	defaultBatch   = 64
	defaultTimeout = 30 * time.Second
)

// Config names an endpoint and a model.
type Config struct {
	// BaseURL ends before embeddings; empty means [DefaultBaseURL].
	BaseURL string
	Model   string
	Key     string // empty where the endpoint wants none
	// Dimensions of the model's vectors. Models of the family text-embedding-3 are
	// asked for so many.
	Dimensions int
	// Batch is the largest number of texts in a request. Default: 64.
	Batch int
	// Timeout bounds a request. Default: 30 s.
	Timeout time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Embedder implements [embed.Embedder]. It retries nothing. After an answer that says
// how long to wait it sends no request before then.
type Embedder struct {
	cfg     Config
	service openai.EmbeddingService
	until   atomic.Int64 // Unix time in ns before which no request is sent
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns an embedder. It calls nothing.
func New(cfg Config) (*Embedder, error) {
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	if base, err := url.Parse(cfg.BaseURL); err != nil || base.Host == "" {
		return nil, fmt.Errorf("openai: base URL %q names no host", cfg.BaseURL)
	}
	if cfg.Model == "" || cfg.Dimensions <= 0 {
		return nil, errors.New("openai: an embedder needs a model and its dimensions")
	}
	if cfg.Batch <= 0 {
		cfg.Batch = defaultBatch
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	opts := []option.RequestOption{
		option.WithHTTPClient(llm.NewHTTPClient(cfg.Timeout)), option.WithMaxRetries(0),
		option.WithBaseURL(strings.TrimSuffix(cfg.BaseURL, "/") + "/"),
	}
	if cfg.Key != "" {
		opts = append(opts, option.WithAPIKey(cfg.Key))
	}
	return &Embedder{cfg: cfg, service: openai.NewEmbeddingService(opts...)}, nil
}

// Info implements [embed.Embedder]. The endpoint has no part in it: the model is the
// same wherever it runs.
func (e *Embedder) Info() embed.Info {
	return embed.Info{Name: "openai:" + e.cfg.Model, Version: "1", Dimensions: e.cfg.Dimensions, Semantic: true}
}

// Embed implements [embed.Embedder]. A text that is too long for the model is refused.
// The error of an outage wraps one of package llm.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(texts))
	var full []int // the texts that are not empty
	for i, text := range texts {
		if vectors[i] = make([]float32, e.cfg.Dimensions); strings.TrimSpace(text) != "" {
			full = append(full, i)
		}
	}
	for batch := range slices.Chunk(full, e.cfg.Batch) {
		if err := e.embed(ctx, texts, batch, vectors); err != nil {
			return nil, fmt.Errorf("openai: %w", err)
		}
	}
	return vectors, nil
}

// embed sets the vectors of the texts that batch names.
func (e *Embedder) embed(ctx context.Context, texts []string, batch []int, vectors [][]float32) error {
	if wait := time.Duration(e.until.Load() - e.cfg.Now().UnixNano()); wait > 0 {
		return fmt.Errorf("%w: the endpoint asks to wait for %v more", llm.ErrRateLimited, wait.Round(time.Millisecond))
	}
	params := openai.EmbeddingNewParams{Model: e.cfg.Model, EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat}
	for _, i := range batch {
		params.Input.OfArrayOfStrings = append(params.Input.OfArrayOfStrings, texts[i])
	}
	if strings.HasPrefix(e.cfg.Model, "text-embedding-3") {
		params.Dimensions = param.NewOpt(int64(e.cfg.Dimensions))
	}
	answer, err := e.service.New(ctx, params)
	if err != nil {
		return e.read(ctx, err)
	}
	if len(answer.Data) != len(batch) {
		return fmt.Errorf("%w: %d vectors for %d texts", llm.ErrMalformed, len(answer.Data), len(batch))
	}
	seen := make([]bool, len(batch))
	for _, d := range answer.Data {
		if d.Index < 0 || d.Index >= int64(len(batch)) || seen[d.Index] {
			return fmt.Errorf("%w: a vector has the index %d of %d texts", llm.ErrMalformed, d.Index, len(batch))
		}
		seen[d.Index] = true
		v := vectors[batch[d.Index]]
		if len(d.Embedding) != len(v) {
			return fmt.Errorf("%w: the model has %d dimensions, not %d as configured", llm.ErrMalformed, len(d.Embedding), len(v))
		}
		for k, x := range d.Embedding {
			v[k] = float32(x)
		}
		embed.Normalise(v)
	}
	return nil
}

// read tells a refused text from an outage, and remembers how long the endpoint asks to
// wait. Any other answer that says that the request is wrong may be about the
// configuration: it is no refusal, or all texts would be set aside for it.
func (e *Embedder) read(ctx context.Context, err error) error {
	err = llm.Read(ctx, err)
	if wait, ok := llm.RetryAfter(err); ok {
		e.until.Store(e.cfg.Now().Add(wait).UnixNano())
	}
	var status *llm.StatusError
	tooLong := errors.As(err, &status) && status.Status == http.StatusRequestEntityTooLarge ||
		errors.Is(err, llm.ErrInvalid) && llm.Mentions(err, "context length", "maximum input length", "too long", "too many tokens")
	if tooLong || errors.Is(err, llm.ErrRefused) {
		return fmt.Errorf("%w: %w", embed.ErrRefused, err)
	}
	return err
}
