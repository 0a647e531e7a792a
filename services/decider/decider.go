package decider

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// name of the service in dead letters, logs and metrics.
const name = "decider"

// Deps is what the decider needs.
type Deps struct {
	State  store.StateReader
	Whole  store.WholeReader
	Facts  store.FactReader
	Search store.Searcher
	// Deciders holds the implementations by the names that rules use.
	Deciders map[string]decide.Decider
}

// Service implements [pipeline.Service].
type Service struct {
	cfg    Config
	deps   Deps
	policy decide.Policy
	rules  map[string]memory.Rule
	decay  func(events.FactKind) float64
}

var _ pipeline.Service = (*Service)(nil)

// New wires the service. It refuses an invalid configuration, missing
// dependencies, and rules that name an unknown decider.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.State == nil || deps.Whole == nil || deps.Facts == nil || deps.Search == nil {
		return nil, errors.New("decider: needs state, whole reads, facts and search")
	}
	cfg = cfg.WithDefaults()
	sensitive, err := cfg.treatments()
	if err != nil {
		return nil, err
	}
	decay, err := cfg.rates()
	if err != nil {
		return nil, err
	}
	s := &Service{decay: decay, cfg: cfg, deps: deps, policy: decide.NewPolicy(cfg.SafetyMarkers).WithSensitive(sensitive), rules: map[string]memory.Rule{}}
	for _, r := range cfg.Rules {
		s.rules[r.ID] = r
	}
	for _, r := range append(cfg.Rules, memory.Rule{ID: "default"}) {
		if s.decider(r) == nil {
			return nil, fmt.Errorf("decider: rule %q: no decider is called %q", r.ID, s.deciderName(r))
		}
	}
	return s, nil
}

// Rehearse returns the deltas that a batch would lead to at an instant. A model's
// calls count.
func (s *Service) Rehearse(ctx context.Context, batch events.CandidatesExtracted, at time.Time) (out events.DeltasDecided, err error) {
	in := events.Event[events.CandidatesExtracted]{Meta: events.Meta{ID: "rehearsal", Time: at}, Data: batch}
	made, err := s.decide(ctx, in)
	if err == nil && len(made) > 0 {
		out, _ = made[0].(events.DeltasDecided)
	}
	return out, err
}

// Name implements [pipeline.Service].
func (*Service) Name() string { return name }

// Stages implements [pipeline.Service].
func (s *Service) Stages() []pipeline.Stage {
	return []pipeline.Stage{
		pipeline.Consume("CANDIDATES", "decider-candidates-rules", pipeline.On(s.decide)),
		pipeline.Consume("CANDIDATES", "decider-candidates-model", pipeline.On(s.decide)),
		pipeline.Consume("CANDIDATES", "decider-candidates", pipeline.On(s.decide)), // work without a class
		pipeline.Consume("COMMANDS", "decider-commands", pipeline.On(s.command)),
	}
}

func (s *Service) deciderName(r memory.Rule) string {
	if r.Decider != "" {
		return r.Decider
	}
	return s.cfg.Decider
}

// breaker bounds how often what candidates say changes a fact.
func (s *Service) breaker() decide.Breaker {
	return decide.Breaker{Limit: s.cfg.Churn.Limit, Window: s.cfg.Churn.Window}
}

func (s *Service) decider(r memory.Rule) decide.Decider { return s.deps.Deciders[s.deciderName(r)] }

// rule is the consolidation rule of a batch; one that is not configured here
// (any more) may emit all kinds.
func (s *Service) rule(id string) memory.Rule {
	if r, ok := s.rules[id]; ok {
		return r
	}
	return memory.Rule{ID: id}
}
