package consolidator

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"palimpsest/internal/audit"
	"palimpsest/internal/cursor"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Deps is what the consolidator works with.
type Deps struct {
	Applier  store.Applier
	Facts    store.FactReader
	Outcomes store.OutcomeReader
	Journal  audit.Journal
	Log      audit.Writer
	// Kept has the effects that AUDIT dropped; nil where nothing has.
	Kept audit.EffectArchive
	// Cursors lie in the memory store, LogCursors in Log. Shares divides the work.
	Cursors    cursor.Store
	LogCursors cursor.Store
	Shares     cursor.Shares
	// Behind reports whether episodes of a fact scope are in their stream and not
	// yet stored. If it is nil, a scope never counts on from its watermark.
	Behind func(ctx context.Context, fact scope.Scope) (bool, error)
	// Adopt is as in [pipeline.Log], of each of the two readers of AUDIT; nil begins
	// at its beginning.
	Adopt  func(ctx context.Context, p pipeline.Partition) (after uint64, err error)
	Logger *slog.Logger // nil discards
	// Born returns the first incarnation of a user whose effects the audit log keeps.
	// Earlier ones were erased; an older copy of AUDIT may still have them. Nil keeps
	// all.
	Born func(project, user string) uint64
	// Observe receives each effect that this process committed, once it is
	// applied, unless it is nil.
	Observe func(events.EffectCommitted)
}

// Service commits effects and projects them.
type Service struct {
	cfg  Config
	deps Deps
	own  own
	// accesses are those that were counted in the last minute.
	accesses accesses
	read     atomic.Uint64 // sequence of the newest effect that the projector was given
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
	if deps.Born == nil {
		deps.Born = func(string, string) uint64 { return 0 }
	}
	return &Service{cfg: cfg.WithDefaults(), deps: deps}, nil
}

// auditStream is what both projections read.
const auditStream = "AUDIT"

// Name implements [pipeline.Service].
func (*Service) Name() string { return "consolidator" }

// Stages implements [pipeline.Service].
func (s *Service) Stages() []pipeline.Stage {
	return []pipeline.Stage{
		pipeline.Consume("DELTAS", "consolidator-deltas-rules", pipeline.On(s.commit)),
		pipeline.Consume("DELTAS", "consolidator-deltas-model", pipeline.On(s.commit)),
		pipeline.Consume("DELTAS", "consolidator-deltas", pipeline.On(s.commit)), // work without a class
		pipeline.ReadLog(pipeline.Log{
			Name: Projector, Stream: auditStream, Partitions: Partitions(), Adopt: s.deps.Adopt,
			Cursors: s.deps.Cursors, Shares: s.deps.Shares, Handle: s.project,
		}),
		pipeline.ReadLog(pipeline.Log{
			Name: logReader, Stream: auditStream, Partitions: wholeAudit(logReader), Adopt: s.deps.Adopt,
			Cursors: s.deps.LogCursors, Shares: s.deps.Shares, Handle: s.sink, Batch: s.cfg.SinkSize, Linger: s.cfg.SinkWait,
		}),
		pipeline.Consume("ACCESS", "consolidator-access", pipeline.OnRun(s.access)),
	}
}

// Partitions are those of AUDIT for the projector: it is read by one reader.
func Partitions() []pipeline.Partition { return wholeAudit(Projector) }

// logReader is the name of the reader of AUDIT that fills the audit log.
const logReader = "consolidator-auditlog"

// wholeAudit is all of AUDIT, read by one reader.
func wholeAudit(reader string) []pipeline.Partition {
	return []pipeline.Partition{{Reader: reader, Filter: "palimpsest." + events.NounAudit + ".>"}}
}

// Forget must be called when the store may have lost what it acknowledged: what
// this process has applied is looked up again.
func (s *Service) Forget() { s.own.forget() }
