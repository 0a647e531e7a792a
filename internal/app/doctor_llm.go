package app

import (
	"encoding/json"
	"fmt"
	"slices"
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

// llm asks each model one short question.
func (e *examination) llm() (string, error) {
	if !e.cfg.LLM.on() {
		return "none: rule packs extract", nil
	}
	var told []string
	var asked []Endpoint
	for _, stage := range stages {
		endpoint := e.cfg.LLM.endpoint(stage)
		if slices.Contains(asked, endpoint) {
			continue
		}
		asked = append(asked, endpoint)
		m, err := e.cfg.LLM.open(endpoint)
		if err != nil {
			return "", err
		}
		began := time.Now()
		reply, err := m.Complete(e.ctx, probe)
		if err == nil {
			_, err = llm.Items(reply.Text, probe.Name)
		}
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", endpoint.Provider, endpoint.Model, err)
		}
		told = append(told, fmt.Sprintf("%s %s answers in %v, in mode %s, for %d tokens",
			endpoint.Provider, endpoint.Model, time.Since(began).Round(time.Millisecond), m.Mode(), reply.InputTokens+reply.OutputTokens))
	}
	return strings.Join(told, "; "), nil
}
