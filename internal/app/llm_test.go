package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"palimpsest/internal/doctor"
	"palimpsest/internal/llm"
	"palimpsest/internal/llm/llmtest"
	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/pkg/events"
)

func TestLLMConfig(t *testing.T) {
	t.Parallel()
	with := func(change func(*LLM)) LLM {
		c := defaultLLM()
		c.Provider, c.Model = providerOpenAI, "m-1"
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		cfg  LLM
		want string // part of the error; empty for none
	}{
		"none":                {defaultLLM(), ""},
		"openai":              {with(func(*LLM) {}), ""},
		"no provider":         {func() LLM { c := defaultLLM(); c.Model = "m-1"; return c }(), "llm.provider"},
		"unknown provider":    {with(func(c *LLM) { c.Provider = "oracle" }), "none of openai"},
		"no model":            {with(func(c *LLM) { c.Model = "" }), "model: is required"},
		"a stage's model":     {with(func(c *LLM) { c.Decide.Model = "m-2" }), ""},
		"a stage's provider":  {with(func(c *LLM) { c.Decide.Endpoint = Endpoint{Provider: providerGemini, Model: "g"} }), ""},
		"its model missing":   {with(func(c *LLM) { c.Decide.Endpoint = Endpoint{Provider: providerGemini} }), "for decide: model"},
		"azure without a URL": {with(func(c *LLM) { c.Provider = providerAzure }), "base_url"},
		"bad URL":             {with(func(c *LLM) { c.BaseURL = "localhost:1234" }), "base_url"},
		"bad mode":            {with(func(c *LLM) { c.Mode = "xml" }), "mode"},
		"bad limits":          {with(func(c *LLM) { c.Limits.DailyDollars = 1 }), "llm.limits"},
		"bad timeout":         {with(func(c *LLM) { c.Timeout = time.Hour }), "llm.timeout"},
	} {
		err := c.cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	c := with(func(c *LLM) {
		c.BaseURL = "http://a/"
		c.Decide.Endpoint = Endpoint{Provider: providerGemini, Model: "g"}
	})
	if e := c.endpoint("decide"); e.BaseURL != "" || e.Provider != providerGemini {
		t.Errorf("another provider's URL is taken over: %+v", e)
	}
	list, err := rules.Config{}.Rules(c.name())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if model := r.ID == memory.RuleSleep || r.ID == memory.RuleAdd; model != (r.Class == events.ClassModel) || model != (r.Extractor == modelName) {
			t.Errorf("rule %+v", r)
		}
	}
}

func TestKeysComeFromTheEnvironmentAndFiles(t *testing.T) {
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
	s := llmtest.Serve(t, llmtest.OpenAI, func(llmtest.Asked) llmtest.Answer {
		return llmtest.Answer{Text: `{"animals":[{"name":"cat"}]}`, Input: 40, Output: 5}
	})
	c := defaultLLM()
	c.Provider, c.Model, c.BaseURL, c.Keys.OpenAI = providerOpenAI, "m-1", s.URL, "file://"+path
	said, err := doctor.AskModels(t.Context(), c.models())
	if err != nil || !strings.Contains(said, "openai m-1 answers") || !strings.Contains(said, "mode schema, for 45 tokens") || strings.Count(said, ";") != 0 {
		t.Errorf("%q, %v", said, err)
	}
	if asked := s.Asked(); len(asked) != 1 || asked[0].Key != "hunter2" || asked[0].Mode != llm.ModeSchema {
		t.Errorf("asked %+v", asked)
	}
	if said, err := doctor.AskModels(t.Context(), LLM{}.models()); err != nil || !strings.Contains(said, "none") {
		t.Errorf("%q, %v", said, err)
	}
}
