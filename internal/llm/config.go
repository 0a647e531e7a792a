package llm

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Config says which language models extract and decide. Without a provider none does:
// the rule packs extract, and the deterministic steps decide.
type Config struct {
	Endpoint
	// Extract and Decide say where a stage differs; their zero members are those
	// above.
	Extract, Decide Stage
	Keys            Keys
	// Timeout bounds one call.
	Timeout     time.Duration
	Temperature float64
	Limits      Limits
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

// Client is what a provider needs to reach the model of an endpoint.
type Client struct {
	BaseURL string // empty means the provider's own
	// APIVersion is that of an Azure resource whose Model is a deployment; empty
	// for all others.
	APIVersion  string
	Model       string
	Key         string // empty where the endpoint wants none
	Temperature float64
	Timeout     time.Duration // of a request
}

// Client reads the key of an endpoint.
func (c Config) Client(e Endpoint) (Client, error) {
	key, err := c.Key(e.Provider)
	return Client{
		BaseURL: e.BaseURL, APIVersion: e.APIVersion, Model: e.Model, Key: key, Temperature: c.Temperature, Timeout: c.Timeout,
	}, err
}

// Keys are the keys of the providers, or file:///… for the file that holds one.
type Keys struct {
	OpenAI    string `secret:"true" yaml:"openai"`
	Anthropic string `secret:"true"`
	Gemini    string `secret:"true"`
}

// The values of Endpoint.Provider.
const (
	OpenAI    = "openai"
	Azure     = "azure"
	Anthropic = "anthropic"
	Gemini    = "gemini"
)

// Stages are the stages that a model can work for.
var Stages = []string{"extract", "decide"}

// DefaultConfig names no model.
func DefaultConfig() Config {
	return Config{Timeout: 2 * time.Minute, Extract: Stage{MaxTokens: 4000}, Decide: Stage{MaxTokens: 2000}, Limits: Limits{}.WithDefaults()}
}

// On reports whether a model works for any stage.
func (c Config) On() bool { return c.Provider != "" }

// Stage is what is particular to a stage.
func (c Config) Stage(name string) Stage {
	if name == "decide" {
		return c.Decide
	}
	return c.Extract
}

// EndpointOf is the endpoint of a stage.
func (c Config) EndpointOf(stage string) Endpoint {
	own := c.Stage(stage).Endpoint
	if own.Provider != "" && own.Provider != c.Provider {
		return own // nothing of another provider's fits
	}
	return Endpoint{
		Provider: c.Provider, BaseURL: cmp.Or(own.BaseURL, c.BaseURL), APIVersion: cmp.Or(own.APIVersion, c.APIVersion),
		Model: cmp.Or(own.Model, c.Model), Mode: cmp.Or(own.Mode, c.Mode),
	}
}

// Endpoints are those of all stages, each once; none where no model works.
func (c Config) Endpoints() (all []Endpoint) {
	for _, stage := range Stages {
		if e := c.EndpointOf(stage); c.On() && !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

// Validate names every setting that cannot be used.
func (c Config) Validate() error {
	if !c.On() {
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
	for _, stage := range Stages {
		if err := c.EndpointOf(stage).validate(); err != nil {
			errs = append(errs, fmt.Errorf("llm, for %s: %w", stage, err))
		}
		if n := c.Stage(stage).MaxTokens; n < 100 || n > 100_000 {
			errs = append(errs, fmt.Errorf("llm.%s.max_tokens: %d is outside 100 to 100000", stage, n))
		}
	}
	return errors.Join(errs...)
}

func (e Endpoint) validate() error {
	switch {
	case !slices.Contains([]string{OpenAI, Azure, Anthropic, Gemini}, e.Provider):
		return fmt.Errorf("provider: %q is none of openai, azure, anthropic, gemini", e.Provider)
	case e.Model == "":
		return errors.New("model: is required")
	case e.Provider == Azure && e.BaseURL == "":
		return errors.New("base_url: is required for azure")
	case e.APIVersion != "" && e.Provider != Azure:
		return errors.New("api_version: belongs to azure")
	case !slices.Contains([]string{"", string(ModeSchema), string(ModeTool), string(ModePlain)}, e.Mode):
		return fmt.Errorf("mode: %q is none of schema, tool, plain", e.Mode)
	}
	if e.BaseURL != "" {
		if u, err := url.Parse(e.BaseURL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("base_url: is no http or https URL") // it may hold a password
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

// Key is the key of a provider. It is empty where none is set.
func (c Config) Key(provider string) (string, error) {
	return secret(map[string]string{
		OpenAI: c.Keys.OpenAI, Azure: c.Keys.OpenAI, Anthropic: c.Keys.Anthropic, Gemini: c.Keys.Gemini,
	}[provider])
}
