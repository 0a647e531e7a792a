package llm

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// Models are the models of the stages of a process. Stages with one endpoint share a
// governor: its limits are the endpoint's.
type Models struct {
	cfg       Config
	kept      Replies
	open      func(Config, Endpoint) (*Ladder, error)
	now       func() time.Time
	governors map[Endpoint]*Governor
}

// NewModels returns the models that cfg names, with their replies and bills in kept. open
// opens the model of an endpoint, and calls nothing.
func NewModels(cfg Config, kept Replies, open func(Config, Endpoint) (*Ladder, error), now func() time.Time) *Models {
	return &Models{cfg, kept, open, now, map[Endpoint]*Governor{}}
}

// Of returns the model of a stage, with its cache and its governor, and the text that
// replaces the task of its prompt; empty for none. It is not safe for concurrent use.
func (m *Models) Of(stage string) (Model, string, error) {
	task := ""
	if file := m.cfg.Stage(stage).Prompt; file != "" {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, "", fmt.Errorf("llm.%s.prompt: %w", stage, err)
		}
		task = string(raw)
	}
	e := m.cfg.EndpointOf(stage)
	g, known := m.governors[e]
	if !known {
		opened, err := m.open(m.cfg, e)
		if err != nil {
			return nil, "", fmt.Errorf("llm, for %s: %w", stage, err)
		}
		g = Govern(opened, m.cfg.Limits, NewPurse(m.kept), m.now)
		m.governors[e] = g
	}
	return Cached(g, m.kept, m.now), task, nil
}

// Governors are those of the models that [Models.Of] has returned.
func (m *Models) Governors() []*Governor { return slices.Collect(maps.Values(m.governors)) }
