package llm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	with := func(change func(*Config)) Config {
		c := DefaultConfig()
		c.Provider, c.Model = OpenAI, "m-1"
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string // part of the error; empty for none
	}{
		"none":                {DefaultConfig(), ""},
		"openai":              {with(func(*Config) {}), ""},
		"no provider":         {func() Config { c := DefaultConfig(); c.Model = "m-1"; return c }(), "llm.provider"},
		"unknown provider":    {with(func(c *Config) { c.Provider = "oracle" }), "none of openai"},
		"no model":            {with(func(c *Config) { c.Model = "" }), "model: is required"},
		"a stage's model":     {with(func(c *Config) { c.Decide.Model = "m-2" }), ""},
		"a stage's provider":  {with(func(c *Config) { c.Decide.Endpoint = Endpoint{Provider: Gemini, Model: "g"} }), ""},
		"its model missing":   {with(func(c *Config) { c.Decide.Endpoint = Endpoint{Provider: Gemini} }), "for decide: model"},
		"azure without a URL": {with(func(c *Config) { c.Provider = Azure }), "base_url"},
		"bad URL":             {with(func(c *Config) { c.BaseURL = "localhost:1234" }), "base_url"},
		"bad mode":            {with(func(c *Config) { c.Mode = "xml" }), "mode"},
		"bad limits":          {with(func(c *Config) { c.Limits.DailyDollars = 1 }), "llm.limits"},
		"bad timeout":         {with(func(c *Config) { c.Timeout = time.Hour }), "llm.timeout"},
	} {
		err := c.cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	c := with(func(c *Config) {
		c.BaseURL = "http://a/"
		c.Decide.Endpoint = Endpoint{Provider: Gemini, Model: "g"}
	})
	if e := c.EndpointOf("decide"); e.BaseURL != "" || e.Provider != Gemini {
		t.Errorf("another provider's URL is taken over: %+v", e)
	}
}

func TestKeysComeFromFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := secret("file://" + path); err != nil || key != "hunter2" {
		t.Errorf("key %q, %v", key, err)
	}
	if _, err := secret("file://" + path + "x"); err == nil {
		t.Error("a missing file is no error")
	}
}
