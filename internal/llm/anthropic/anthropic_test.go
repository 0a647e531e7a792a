package anthropic_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/llm"
	"palimpsest/internal/llm/anthropic"
	"palimpsest/internal/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProvider(t *testing.T) {
	t.Parallel()
	llmtest.RunAll(t, llmtest.Provider{Wire: llmtest.Anthropic, Open: func(url string, timeout time.Duration) (llm.Provider, error) {
		return anthropic.New(anthropic.Config{BaseURL: url, Model: "m-1", Key: llmtest.Key, Timeout: timeout})
	}})
}
