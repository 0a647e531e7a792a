package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"palimpsest/internal/llm"
	"palimpsest/pkg/scope"
)

// probe is the shortest question that shows whether an endpoint answers in JSON.
var probe = llm.Request{
	Scope: scope.Scope{Project: "default", Agent: "doctor"}, System: "You test a connection.", User: "List the one animal in: a cat.",
	Name: "animals", MaxTokens: 100,
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["animals"],"properties":{"animals":{"type":"array","items":{` +
		`"type":"object","additionalProperties":false,"required":["name"],"properties":{"name":{"type":"string"}}}}}}`),
}

// Model is a language model by its provider and its name.
type Model struct {
	Name string
	Open func() (*llm.Ladder, error)
}

// Models are those of the configuration, each endpoint once; open opens one.
func Models(c llm.Config, open func(llm.Config, llm.Endpoint) (*llm.Ladder, error)) (all []Model) {
	for _, e := range c.Endpoints() {
		all = append(all, Model{Name: e.Provider + " " + e.Model, Open: func() (*llm.Ladder, error) { return open(c, e) }})
	}
	return all
}

// AskModels asks each model one short question.
func AskModels(ctx context.Context, models []Model) (string, error) {
	if len(models) == 0 {
		return "none: rule packs extract", nil
	}
	var told []string
	for _, model := range models {
		m, err := model.Open()
		if err != nil {
			return "", err
		}
		began := time.Now()
		reply, err := m.Complete(ctx, probe)
		if err == nil {
			_, err = llm.Items(reply.Text, probe.Name)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", model.Name, err)
		}
		told = append(told, fmt.Sprintf("%s answers in %v, in mode %s, for %d tokens",
			model.Name, time.Since(began).Round(time.Millisecond), m.Mode(), reply.InputTokens+reply.OutputTokens))
	}
	return strings.Join(told, "; "), nil
}
