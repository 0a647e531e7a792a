package consolidator

import (
	"context"
	"errors"
	"log/slog"

	"palimpsest/internal/audit"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// Deps is what the consolidator works with.
type Deps struct {
	Applier  store.Applier
	Facts    store.FactReader
	Outcomes store.OutcomeReader
	Journal  audit.Journal
	Log      audit.Writer
	// Kept has the effects that AUDIT dropped; nil where nothing has.
	Kept audit.Keeper
	// End and Tail are for a Log that may be restored from an older copy while it
	// is written to: where it goes, and what it lacks. Nil for one that cannot.
	End  LogEnd
	Tail audit.Tail
	// Acknowledged is the sequence up to which any process has handled what a
	// consumer is to read; nil where there is no other process to ask about.
	Acknowledged func(ctx context.Context, consumer string) (uint64, error)
	// Stored names the scopes that the store holds, for [Service.Heal]; nil
	// compares only those that AUDIT or the audit log holds.
	Stored store.Exporter
	Logger *slog.Logger // nil discards
	// Observe is told of each effect that this process committed, once it is
	// applied; nil ignores it.
	Observe func(events.EffectCommitted)
}

// Service commits effects and projects them.
type Service struct {
	cfg  Config
	deps Deps
	own  own
	end  end
}

// New returns the service, or an error that names what is wrong.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Applier == nil || deps.Facts == nil || deps.Outcomes == nil || deps.Journal == nil || deps.Log == nil {
		return nil, errors.New("consolidator: needs applier, facts, outcomes, journal and log")
	}
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	if deps.Observe == nil {
		deps.Observe = func(events.EffectCommitted) {}
	}
	return &Service{cfg: cfg.WithDefaults(), deps: deps}, nil
}

// logConsumer is the consumer that fills the audit log.
const logConsumer = "consolidator-auditlog"

// Name implements [pipeline.Service].
func (*Service) Name() string { return "consolidator" }

// Stages implements [pipeline.Service].
func (s *Service) Stages() []pipeline.Stage {
	return []pipeline.Stage{
		pipeline.Consume("consolidator-deltas-rules", pipeline.On(s.commit)),
		pipeline.Consume("consolidator-deltas-model", pipeline.On(s.commit)),
		pipeline.Consume("consolidator-deltas", pipeline.On(s.commit)), // work without a class
		pipeline.Consume("consolidator-projector", pipeline.On(s.project)),
		pipeline.ConsumeBatch(logConsumer, s.cfg.SinkSize, s.cfg.SinkWait, s.sink),
		pipeline.ConsumeBatch("consolidator-access", s.cfg.AccessSize, s.cfg.AccessWait, s.access),
		pipeline.Clock("consolidator-logend", endInterval, nil, s.watchEnd),
	}
}

// Forget must be called when the store may have lost what it acknowledged: what
// this process has applied is looked up again.
func (s *Service) Forget() { s.own.forget() }
