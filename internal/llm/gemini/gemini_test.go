package gemini_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/llm"
	"palimpsest/internal/llm/gemini"
	"palimpsest/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProvider(t *testing.T) {
	t.Parallel()
	llmtest.RunAll(t, llmtest.Provider{Wire: llmtest.Gemini, Open: func(url string, timeout time.Duration) (llm.Provider, error) {
		return gemini.New(gemini.Config{BaseURL: url, Model: "m-1", Key: llmtest.Key, Timeout: timeout})
	}})
}
