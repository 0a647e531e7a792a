package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

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

// LLM says which language models extract and decide. Without a provider none does:
// the rule packs extract, and the deterministic steps decide.
type LLM struct {
	Endpoint
	// Extract and Decide say where a stage differs; their zero members are those
	// above.
	Extract, Decide Stage
	Keys            Keys
	// Timeout bounds one call.
	Timeout     time.Duration
	Temperature float64
	Limits      llm.Limits
}

// Stage is what is particular to one stage.
type Stage struct {
	Endpoint
	// Prompt is a file that replaces the task of the stage's prompt.
	Prompt string
	// MaxTokens bounds a reply.
	MaxTokens int
}

// Endpoint is a model at a provider.
type Endpoint struct {
	// Provider is openai (any endpoint with chat completions), azure, anthropic or
	// gemini.
	Provider string
	// BaseURL is that of the provider where it is empty.
	BaseURL string
	// APIVersion is that of an Azure resource, whose deployment Model names.
	APIVersion string
	Model      string
	// Mode is how a reply is asked for: schema, tool or plain; empty finds out.
	Mode string
}

// Keys are the keys of the providers, or file:///… for the file that holds one.
type Keys struct {
	OpenAI    string `secret:"true" yaml:"openai"`
	Anthropic string `secret:"true"`
	Gemini    string `secret:"true"`
}

// The values of llm.provider.
const (
	providerOpenAI    = "openai"
	providerAzure     = "azure"
	providerAnthropic = "anthropic"
	providerGemini    = "gemini"
)

// stages are the stages that a model can work for.
var stages = []string{"extract", "decide"}

// modelName is how rules name the extractor and the decider with a model.
const modelName = rules.Model

func defaultLLM() LLM {
	return LLM{Timeout: 2 * time.Minute, Extract: Stage{MaxTokens: 4000}, Decide: Stage{MaxTokens: 2000}, Limits: llm.Limits{}.WithDefaults()}
}

// on reports whether a model works for any stage.
func (c LLM) on() bool { return c.Provider != "" }

// stage is what is particular to a stage.
func (c LLM) stage(name string) Stage {
	if name == "decide" {
		return c.Decide
	}
	return c.Extract
}

// endpoint is that of a stage.
func (c LLM) endpoint(stage string) Endpoint {
	own := c.stage(stage).Endpoint
	if own.Provider != "" && own.Provider != c.Provider {
		return own // nothing of another provider's fits
	}
	return Endpoint{
		Provider: c.Provider, BaseURL: cmp.Or(own.BaseURL, c.BaseURL), APIVersion: cmp.Or(own.APIVersion, c.APIVersion),
		Model: cmp.Or(own.Model, c.Model), Mode: cmp.Or(own.Mode, c.Mode),
	}
}

// Validate names every setting that cannot be used.
func (c LLM) Validate() error {
	if !c.on() {
		if c.Endpoint != (Endpoint{}) || c.Extract.Endpoint != (Endpoint{}) || c.Decide.Endpoint != (Endpoint{}) {
			return errors.New("llm.provider: is required where an llm setting names a model")
		}
		return nil
	}
	var errs []error
	if err := c.Limits.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("llm.limits: %w", err))
	}
	if c.Timeout < time.Millisecond || c.Timeout > 4*time.Minute {
		errs = append(errs, fmt.Errorf("llm.timeout: %v is outside 1ms to 4m", c.Timeout))
	}
	if c.Temperature < 0 || c.Temperature > 2 {
		errs = append(errs, fmt.Errorf("llm.temperature: %g is outside 0 to 2", c.Temperature))
	}
	for _, stage := range stages {
		if err := c.endpoint(stage).validate(); err != nil {
			errs = append(errs, fmt.Errorf("llm, for %s: %w", stage, err))
		}
		if n := c.stage(stage).MaxTokens; n < 100 || n > 100_000 {
			errs = append(errs, fmt.Errorf("llm.%s.max_tokens: %d is outside 100 to 100000", stage, n))
		}
	}
	return errors.Join(errs...)
}

func (e Endpoint) validate() error {
	switch {
	case !slices.Contains([]string{providerOpenAI, providerAzure, providerAnthropic, providerGemini}, e.Provider):
		return fmt.Errorf("provider: %q is none of openai, azure, anthropic, gemini", e.Provider)
	case e.Model == "":
		return errors.New("model: is required")
	case e.Provider == providerAzure && e.BaseURL == "":
		return errors.New("base_url: is required for azure")
	case e.APIVersion != "" && e.Provider != providerAzure:
		return errors.New("api_version: belongs to azure")
	case !slices.Contains([]string{"", string(llm.ModeSchema), string(llm.ModeTool), string(llm.ModePlain)}, e.Mode):
		return fmt.Errorf("mode: %q is none of schema, tool, plain", e.Mode)
	}
	if e.BaseURL != "" {
		if u, err := url.Parse(e.BaseURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("base_url: %q is no http or https URL", e.BaseURL)
		}
	}
	return nil
}

// secret is a key, read from the file that it names.
func secret(key string) (string, error) {
	path, ok := strings.CutPrefix(key, "file://")
	if !ok {
		return key, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// open returns the model of an endpoint. It calls nothing.
func (c LLM) open(e Endpoint) (*llm.Ladder, error) {
	var p llm.Provider
	key, err := secret(map[string]string{
		providerOpenAI: c.Keys.OpenAI, providerAzure: c.Keys.OpenAI, providerAnthropic: c.Keys.Anthropic, providerGemini: c.Keys.Gemini,
	}[e.Provider])
	if err != nil {
		return nil, err
	}
	switch e.Provider {
	case providerAnthropic:
		p, err = anthropic.New(anthropic.Config{BaseURL: e.BaseURL, Model: e.Model, Key: key, Temperature: c.Temperature, Timeout: c.Timeout})
	case providerGemini:
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

// name is that of the extractor and the decider that rules use unless they name one;
// empty where no model is configured.
func (c LLM) name() string {
	if c.on() {
		return modelName
	}
	return ""
}

// model returns the model of a stage, with its cache and its governor. Stages with
// one endpoint share a governor: its limits are the endpoint's.
func (h *process) model(stage string) (llm.Model, string, error) {
	e := h.cfg.LLM.endpoint(stage)
	task, err := readPrompt(h.cfg.LLM.stage(stage).Prompt)
	if err != nil {
		return nil, "", fmt.Errorf("llm.%s.prompt: %w", stage, err)
	}
	g, known := h.governors[e]
	if !known {
		m, err := h.cfg.LLM.open(e)
		if err != nil {
			return nil, "", fmt.Errorf("llm, for %s: %w", stage, err)
		}
		g = llm.Govern(m, h.cfg.LLM.Limits, llm.NewPurse(h.store), h.now)
		if h.governors == nil {
			h.governors = map[Endpoint]*llm.Governor{}
		}
		h.governors[e] = g
	}
	return llm.Cached(g, h.store, h.now), task, nil
}

func readPrompt(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	raw, err := os.ReadFile(path)
	return string(raw), err
}

// modelExtractor adds the extractor with a model, where one is configured.
func (h *process) modelExtractor(to map[string]extract.Extractor, packs extract.Extractor) error {
	if !h.cfg.LLM.on() {
		return nil
	}
	m, task, err := h.model("extract")
	if err != nil {
		return err
	}
	to[modelName] = extractmodel.New(m, packs, extractmodel.Config{Task: task, MaxTokens: h.cfg.LLM.Extract.MaxTokens})
	return nil
}

// modelDecider returns the decider with a model; nil where none is configured.
func (h *process) modelDecider() (*decidemodel.Decider, error) {
	if !h.cfg.LLM.on() {
		return nil, nil //nolint:nilnil // there is none
	}
	m, task, err := h.model("decide")
	if err != nil {
		return nil, err
	}
	return decidemodel.New(m, deterministic.New(), decidemodel.Config{Prompt: task, MaxTokens: h.cfg.LLM.Decide.MaxTokens}), nil
}
