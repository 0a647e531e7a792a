package app

import (
	"fmt"
	"net/url"
	"strings"

	"palimpsest/internal/decide/deterministic"
	decidemodel "palimpsest/internal/decide/model"
	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/embed/openai"
	"palimpsest/internal/embed/static"
	"palimpsest/internal/embed/transformer"
	"palimpsest/internal/extract"
	extractmodel "palimpsest/internal/extract/model"
	"palimpsest/internal/llm"
	"palimpsest/internal/llm/anthropic"
	"palimpsest/internal/llm/gemini"
	llmopenai "palimpsest/internal/llm/openai"
	"palimpsest/internal/rules"
)

// Embedder says what turns texts into vectors. All processes on one memory
// store need the same.
type Embedder struct {
	// Model is hashed (words and their parts), static (meaning, in English, from
	// a table in this program), file:///… (a directory with a BERT model in the
	// layout of sentence-transformers, or a table in that of model2vec), or
	// openai:MODEL (a model at an endpoint with OpenAI's embeddings format).
	Model string
	// BaseURL, Key and Dimensions are those of an endpoint and its model; without a
	// BaseURL it is OpenAI's.
	BaseURL    string
	Key        string `secret:"true"`
	Dimensions int
}

// The values of embedder.model that this program provides.
const (
	modelHashed = "hashed"
	modelStatic = "static"
	modelRemote = "openai:" // and the name of the model
)

// Validate names a model that there is none of.
func (c Embedder) Validate() error {
	_, err := c.opener()
	return err
}

// open returns the embedder that Model names. It calls no endpoint.
func (c Embedder) open() (embed.Embedder, error) {
	open, err := c.opener()
	if err != nil {
		return nil, err
	}
	return open()
}

// opener returns what opens the embedder that Model names.
func (c Embedder) opener() (func() (embed.Embedder, error), error) {
	if model, ok := strings.CutPrefix(c.Model, modelRemote); ok {
		e, err := openai.New(openai.Config{BaseURL: c.BaseURL, Model: model, Key: c.Key, Dimensions: c.Dimensions})
		if err != nil {
			return nil, fmt.Errorf("embedder: %w", err)
		}
		return func() (embed.Embedder, error) { return e, nil }, nil
	}
	switch c.Model {
	case modelHashed:
		return func() (embed.Embedder, error) { return local.New(), nil }, nil
	case modelStatic:
		return ownTable, nil
	}
	u, err := url.Parse(c.Model)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return nil, fmt.Errorf("embedder.model: %q is none of %s, %s, file:///…, %sMODEL", c.Model, modelHashed, modelStatic, modelRemote)
	}
	return func() (embed.Embedder, error) { return openDirectory(u.Path) }, nil
}

// ownTable is the table in the binary, with hashed features for the texts that it does
// not cover.
func ownTable() (embed.Embedder, error) {
	e, err := static.New()
	if err != nil {
		return nil, err
	}
	return embed.Fallback(e, local.New(), static.Covers), nil
}

// openDirectory opens what the configuration of a model says that it is. A table
// of model2vec may have none.
func openDirectory(dir string) (embed.Embedder, error) {
	kind, err := transformer.Type(dir)
	var e embed.Embedder
	switch {
	case err != nil:
	case kind == "" || kind == "model2vec":
		e, err = static.Open(dir)
	default:
		e, err = transformer.Open(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("embedder.model: %w", err)
	}
	return e, nil
}

// embedders returns the set of those that this process can make: the configured one,
// and those of this program, in whose space an earlier configuration may have left
// vectors. Each comes through wrap.
func embedders(configured embed.Embedder, wrap func(embed.Embedder) embed.Embedder) embed.Set {
	return embed.Making(wrap(configured), func(space embed.Info) embed.Embedder {
		if e := ownEmbedder(space); e != nil {
			return wrap(e)
		}
		return nil
	})
}

// ownEmbedder makes one of this program's embedders, nil if none has the space.
func ownEmbedder(space embed.Info) embed.Embedder {
	if e := local.New(); e.Info().Same(space) {
		return e
	}
	if space.Name != modelStatic {
		return nil
	}
	if e, err := ownTable(); err == nil && e.Info().Same(space) {
		return e
	}
	if e, err := static.New(); err == nil && e.Info().Same(space) { // that of version 0.1.0
		return e
	}
	return nil
}

// modelName is how rules name the extractor and the decider with a model.
const modelName = rules.Model

// modelRules is the extractor and decider of rules that name none; empty where no model is
// configured.
func (c Config) modelRules() string {
	if c.LLM.On() {
		return modelName
	}
	return ""
}

// openModel returns the model of an endpoint. It calls nothing.
func openModel(c llm.Config, e llm.Endpoint) (*llm.Ladder, error) {
	var p llm.Provider
	key, err := c.Key(e.Provider)
	if err != nil {
		return nil, err
	}
	switch e.Provider {
	case llm.Anthropic:
		p, err = anthropic.New(anthropic.Config{BaseURL: e.BaseURL, Model: e.Model, Key: key, Temperature: c.Temperature, Timeout: c.Timeout})
	case llm.Gemini:
		p, err = gemini.New(gemini.Config{BaseURL: e.BaseURL, Model: e.Model, Key: key, Temperature: c.Temperature, Timeout: c.Timeout})
	default:
		p, err = llmopenai.New(llmopenai.Config{
			BaseURL: e.BaseURL, APIVersion: e.APIVersion, Model: e.Model, Key: key, Temperature: c.Temperature, Timeout: c.Timeout,
		})
	}
	if err != nil {
		return nil, err
	}
	return llm.New(p, llm.Mode(e.Mode))
}

// modelExtractor adds the extractor with a model, where one is configured.
func (h *process) modelExtractor(to map[string]extract.Extractor, packs extract.Extractor) error {
	if !h.cfg.LLM.On() {
		return nil
	}
	m, task, err := h.models.Of("extract")
	if err != nil {
		return err
	}
	to[modelName] = extractmodel.New(m, packs, extractmodel.Config{Task: task, MaxTokens: h.cfg.LLM.Extract.MaxTokens})
	to[rules.Causes] = extractmodel.NewCauses(m, extractmodel.Config{MaxTokens: h.cfg.LLM.Extract.MaxTokens})
	return nil
}

// modelDecider returns the decider with a model; nil where none is configured.
func (h *process) modelDecider() (*decidemodel.Decider, error) {
	if !h.cfg.LLM.On() {
		return nil, nil //nolint:nilnil // there is none
	}
	m, task, err := h.models.Of("decide")
	if err != nil {
		return nil, err
	}
	return decidemodel.New(m, deterministic.New(), decidemodel.Config{Prompt: task, MaxTokens: h.cfg.LLM.Decide.MaxTokens}), nil
}
