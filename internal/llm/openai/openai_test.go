package openai_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/llm"
	"palimpsest/internal/llm/llmtest"
	"palimpsest/internal/llm/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProvider(t *testing.T) {
	t.Parallel()
	llmtest.RunAll(t, llmtest.Provider{Wire: llmtest.OpenAI, Open: func(url string, timeout time.Duration) (llm.Provider, error) {
		return openai.New(openai.Config{BaseURL: url, Model: "m-1", Key: llmtest.Key, Timeout: timeout})
	}})
}

var question = llm.Request{System: "s", User: "u", MaxTokens: 9}

func model(t *testing.T, cfg openai.Config) llm.Model {
	t.Helper()
	cfg.Model, cfg.Key, cfg.Timeout = "m-1", llmtest.Key, time.Minute
	p, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := llm.New(p, "")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAzure(t *testing.T) {
	t.Parallel()
	s := llmtest.Serve(t, llmtest.OpenAI, func(llmtest.Asked) llmtest.Answer { return llmtest.Answer{Text: "yes"} })
	if _, err := model(t, openai.Config{BaseURL: s.URL, APIVersion: "2024-10-21"}).Complete(t.Context(), question); err != nil {
		t.Fatal(err)
	}
	asked := s.Asked()[0]
	if asked.Path != "/openai/deployments/m-1/chat/completions?api-version=2024-10-21" || asked.Key != llmtest.Key {
		t.Errorf("asked %s with key %q", asked.Path, asked.Key)
	}
}

// TestParameters: an endpoint that does not know a parameter is asked again without
// it, and from then on without it at once.
func TestParameters(t *testing.T) {
	t.Parallel()
	s := llmtest.Serve(t, llmtest.OpenAI, func(a llmtest.Asked) llmtest.Answer {
		for _, name := range []string{"temperature", `"max_tokens"`} {
			if strings.Contains(a.Body, name) {
				return llmtest.Answer{Status: 400, Body: `{"error":{"message":"Unsupported parameter: ` + strings.Trim(name, `"`) + `"}}`}
			}
		}
		return llmtest.Answer{Text: "yes"}
	})
	m := model(t, openai.Config{BaseURL: s.URL})
	for range 2 {
		if _, err := m.Complete(t.Context(), question); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Asked()); n != 4 {
		t.Errorf("asked %d times, want 3 to find out and 1", n)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := openai.New(openai.Config{BaseURL: "localhost"}); err == nil {
		t.Error("a base URL without a host is taken")
	}
}
