package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/doctor"
	"palimpsest/internal/llm"
	"palimpsest/internal/llm/llmtest"
	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/pkg/events"
)

func TestModelRules(t *testing.T) {
	t.Parallel()
	list, err := rules.Config{}.Rules(Config{LLM: llm.Config{Endpoint: llm.Endpoint{Provider: llm.OpenAI, Model: "m-1"}}}.modelRules())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if model := r.ID == memory.RuleSleep || r.ID == memory.RuleAdd || r.ID == memory.RuleMaintenance; model != (r.Class == events.ClassModel) || model != (r.Extractor == rules.Model) {
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
	s := llmtest.Serve(t, llmtest.OpenAI, func(llmtest.Asked) llmtest.Answer {
		return llmtest.Answer{Text: `{"animals":[{"name":"cat"}]}`, Input: 40, Output: 5}
	})
	c := llm.DefaultConfig()
	c.Provider, c.Model, c.BaseURL, c.Keys.OpenAI = llm.OpenAI, "m-1", s.URL, "file://"+path
	said, err := doctor.AskModels(t.Context(), doctor.Models(c, openModel))
	if err != nil || !strings.Contains(said, "openai m-1 answers") || !strings.Contains(said, "mode schema, for 45 tokens") || strings.Count(said, ";") != 0 {
		t.Errorf("%q, %v", said, err)
	}
	if asked := s.Asked(); len(asked) != 1 || asked[0].Key != "hunter2" || asked[0].Mode != llm.ModeSchema {
		t.Errorf("asked %+v", asked)
	}
	if said, err := doctor.AskModels(t.Context(), doctor.Models(llm.Config{}, openModel)); err != nil || !strings.Contains(said, "none") {
		t.Errorf("%q, %v", said, err)
	}
}
