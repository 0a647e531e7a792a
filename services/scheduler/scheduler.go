package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// revisitInterval is how often the queues are served.
const revisitInterval = 100 * time.Millisecond

// Episodes is as much of [store.EpisodeReader] as the scheduler needs.
type Episodes interface {
	EpisodeRange(ctx context.Context, fact scope.Scope, r events.Range) ([]memory.Episode, error)
}

// Deps is what the scheduler needs.
type Deps struct {
	Schedule store.Schedule
	// Episodes tells how long a range is, and when its first episode arrived.
	Episodes Episodes
	// Now is the clock; nil means time.Now. Claims and cron depend on it.
	Now func() time.Time
}

// Service implements [pipeline.Service].
type Service struct {
	cfg   Config
	deps  Deps
	rules []rule // those that read episodes
	// off are those that are switched off: they read what callers want them to.
	off []rule
	// upkeep are those of maintenance.
	upkeep []rule
	// requested reads the episodes that ask for a tick of their own, in their turn
	// among those of the rule answering; nil where no rule does.
	requested *memory.Rule
	answering string
	requests  requests
	runs      runs
	began     time.Time

	fires     fires
	slots     slots
	waiting   waitQueue
	lagging   lagging
	resumed   resumed
	late      late
	handed    handed
	swept     map[queue]scope.Scope // the last one that a sweep put in each
	announced announced
	tending   tending // facts under maintenance; only its stage uses it

	sweepAgain chan struct{}
	pruned     chan struct{}
	queueReady chan struct{}
}

var _ pipeline.Service = (*Service)(nil)

// New wires the service. It refuses an invalid configuration and missing
// dependencies.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Schedule == nil || deps.Episodes == nil {
		return nil, errors.New("scheduler: needs a schedule and an episode reader")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	cfg = cfg.WithDefaults()
	all, err := cfg.rules()
	if err != nil {
		return nil, err
	}
	var rules, off, upkeep []rule
	for _, r := range all {
		switch {
		case !r.Enabled:
			if r.Reads() {
				r.Cadence.Every, r.cron = 0, nil
				off = append(off, r)
			}
		case r.Reads():
			rules = append(rules, r)
		case len(r.Steps) > 0:
			upkeep = append(upkeep, r)
		}
	}
	s := &Service{
		cfg:        cfg,
		deps:       deps,
		rules:      rules,
		off:        off,
		upkeep:     upkeep,
		began:      deps.Now(),
		waiting:    waitQueue{most: maxQueue},
		tending:    make(tending),
		swept:      make(map[queue]scope.Scope),
		slots:      slots{most: cfg.Slots, rules: idsOf(rules), off: idsOf(off), look: deps.Schedule.Look},
		sweepAgain: make(chan struct{}, 1),
		pruned:     make(chan struct{}, 1),
		queueReady: make(chan struct{}, 1),
	}
	if requested, ok := memory.Requested(cfg.Rules); ok {
		answering, _ := memory.Answering(cfg.Rules)
		s.requested, s.answering = &requested, answering.ID
	}
	return s, nil
}

// Name implements [pipeline.Service].
func (*Service) Name() string { return "scheduler" }

// Stages implements [pipeline.Service].
func (s *Service) Stages() []pipeline.Stage {
	return []pipeline.Stage{
		pipeline.Consume("STORED", "scheduler-stored", pipeline.OnRun(s.stored)),
		pipeline.Consume("AUDIT", "scheduler-audit", pipeline.On(s.committed), pipeline.On(s.erased)),
		pipeline.Clock("scheduler-queue", revisitInterval, s.queueReady, s.revisit),
		pipeline.Clock("scheduler-idle", s.cfg.Sweep, nil, s.idle),
		pipeline.Clock("scheduler-holds", s.cfg.Sweep, nil, s.holds),
		pipeline.Clock("scheduler-maintenance", s.cfg.Sweep, s.pruned, s.maintain),
		pipeline.Clock("scheduler-sweep", s.cfg.Sweep, s.sweepAgain, s.sweep),
	}
}

func idsOf(rules []rule) []string {
	ids := make([]string, len(rules))
	for i, r := range rules {
		ids[i] = r.ID
	}
	return ids
}

// rule returns the rule of an id that reads episodes.
func (s *Service) rule(id string) (rule, bool) {
	for _, r := range slices.Concat(s.rules, s.off) {
		if r.ID == id {
			return r, true
		}
	}
	return rule{}, false
}

// nudge wakes a clock stage; it never blocks.
func nudge(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it is about to run anyway
	}
}

// payloads drops the ticks that did not come about.
func payloads(ticks ...*events.TickIssued) []events.Payload {
	var out []events.Payload
	for _, t := range ticks {
		if t != nil {
			out = append(out, *t)
		}
	}
	return out
}
