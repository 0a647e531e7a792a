package extractor

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/extract"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// Deps is what the extractor needs.
type Deps struct {
	Episodes store.EpisodeReader
	// Facts tells extractors what is known of their episodes; nil tells nothing.
	Facts store.FactReader
	// Extractors by the name that rules know them by.
	Extractors map[string]extract.Extractor
	// Fallback extracts what an extractor never will; nil leaves it without a
	// candidate.
	Fallback extract.Extractor
}

// Service implements [pipeline.Service].
type Service struct {
	cfg   Config
	deps  Deps
	rules map[string]ruled
	// answering is the rule in whose turn requests are read; empty where none are.
	answering string
}

// ruled is a rule with its extractor.
type ruled struct {
	memory.Rule
	extractor extract.Extractor
}

var _ pipeline.Service = (*Service)(nil)

// New wires the service. It refuses a rule whose extractor is not there.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.WithDefaults()
	if deps.Episodes == nil {
		return nil, errors.New("extractor: needs an episode reader")
	}
	s := &Service{cfg: cfg, deps: deps, rules: make(map[string]ruled, len(cfg.Rules)+2)}
	if _, ok := memory.Requested(cfg.Rules); ok {
		answering, _ := memory.Answering(cfg.Rules)
		s.answering = answering.ID
	}
	implied := []memory.Rule{{ID: memory.RuleAdd, Enabled: true, Cadence: memory.Cadence{Request: true}}, {ID: memory.RuleVerbatim, Enabled: true}}
	for _, r := range append(implied, cfg.Rules...) {
		if r.Extractor == "" {
			r.Extractor = cfg.Extractor
		}
		x, ok := deps.Extractors[r.Extractor]
		if !ok {
			return nil, fmt.Errorf("extractor: rule %s names extractor %q, which is not there", r.ID, r.Extractor)
		}
		s.rules[r.ID] = ruled{Rule: r, extractor: x}
	}
	return s, nil
}

// Rehearse returns the batch that a tick would lead to. A model's calls count.
func (s *Service) Rehearse(ctx context.Context, tick events.TickIssued) (out events.CandidatesExtracted, err error) {
	made, err := s.extract(ctx, events.Event[events.TickIssued]{Data: tick})
	if err == nil && len(made) > 0 {
		out, _ = made[0].(events.CandidatesExtracted)
	}
	return out, err
}

// Name implements [pipeline.Service].
func (*Service) Name() string { return "extractor" }

// Stages implements [pipeline.Service].
func (s *Service) Stages() []pipeline.Stage {
	return []pipeline.Stage{
		pipeline.Consume("TICKS", "extractor-ticks-rules", pipeline.On(s.extract)),
		pipeline.Consume("TICKS", "extractor-ticks-model", pipeline.On(s.extract)),
		pipeline.Consume("TICKS", "extractor-ticks", pipeline.On(s.extract)), // work without a class
	}
}
