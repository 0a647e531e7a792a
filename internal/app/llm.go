package app

import (
	"palimpsest/internal/decide/deterministic"
	decidemodel "palimpsest/internal/decide/model"
	"palimpsest/internal/extract"
	extractmodel "palimpsest/internal/extract/model"
	"palimpsest/internal/llm"
	"palimpsest/internal/llm/anthropic"
	"palimpsest/internal/llm/gemini"
	"palimpsest/internal/llm/openai"
	"palimpsest/internal/rules"
)

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
		p, err = openai.New(openai.Config{
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
