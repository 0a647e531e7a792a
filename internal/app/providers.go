package app

import (
	"fmt"

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

// openEmbedder returns the embedder that a configuration names. It calls no endpoint.
func openEmbedder(c embed.Config) (embed.Embedder, error) {
	switch kind, name := c.Kind(); kind {
	case embed.Hashed:
		return local.New(), nil
	case embed.Static:
		return ownTable()
	case embed.Remote:
		return openai.New(openai.Config{BaseURL: c.BaseURL, Model: name, Key: c.Key, Dimensions: c.Dimensions})
	default:
		return openDirectory(name)
	}
}

// validateEmbedder opens an endpoint, which calls nothing, and no directory or table: they
// may be large.
func validateEmbedder(c embed.Config) error {
	if kind, _ := c.Kind(); kind == embed.Remote {
		if _, err := openEmbedder(c); err != nil {
			return fmt.Errorf("embedder: %w", err)
		}
	}
	return c.Validate()
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
	if space.Name != embed.Static {
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

// modelRules is the extractor and decider of rules that name none; empty where no model is
// configured.
func (c Config) modelRules() string {
	if c.LLM.On() {
		return rules.Model
	}
	return ""
}

// openModel returns the model of an endpoint. It calls nothing.
func openModel(c llm.Config, e llm.Endpoint) (*llm.Ladder, error) {
	at, err := c.Client(e)
	if err != nil {
		return nil, err
	}
	var p llm.Provider
	switch e.Provider {
	case llm.Anthropic:
		p, err = anthropic.New(at)
	case llm.Gemini:
		p, err = gemini.New(at)
	default:
		p, err = llmopenai.New(at)
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
	to[rules.Model] = extractmodel.New(m, packs, extractmodel.Config{Task: task, MaxTokens: h.cfg.LLM.Extract.MaxTokens})
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
