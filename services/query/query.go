package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/auth"
	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/retrieval"
	"palimpsest/internal/store"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// Deps are the dependencies of the service.
type Deps struct {
	Store     Store
	Searcher  retrieval.Store
	Embedders embed.Set
	Journal   audit.Stream
	Log       AuditLog
	Publisher pipeline.Publisher
	Listener  pipeline.Listener
	Letters   DeadLetters
	// Erasures erase users; nil where the engines in use cannot.
	Erasures Erasures
	// Rules are the consolidation rules; a waiter waits for one that runs on every
	// episode.
	Rules []memory.Rule
	// Bounds of a tick are the scheduler's. Zero members mean [memory.DefaultBounds].
	Bounds memory.Bounds
	// Rehearse decides on a tick without applying it.
	Rehearse Rehearse
	// Understands reports whether facts can be read from texts of a user without a
	// model; nil where a model reads them all.
	Understands func(texts []string) bool
	// Gate finds out who calls.
	Gate *auth.Gate
	// Ready checks every dependency.
	Ready func(context.Context) api.Readiness
	// Metrics serves the Prometheus text format.
	Metrics http.Handler
	Version string
	Now     func() time.Time
	Logger  *slog.Logger
}

// Store is the roles of the memory store that reading takes.
type Store interface {
	store.EpisodeReader
	store.StateReader
	store.WholeReader
	store.FactReader
	store.OutcomeReader
	store.Requests
	store.Exporter
	store.Ledger
	// EndsAbove is as in [store.Schedule].
	EndsAbove(ctx context.Context, fact scope.Scope, from uint64) ([]events.SessionEnd, error)
	// Decayed is as in [store.Schedule].
	Decayed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error)
	// Undescribed is as in [store.Schedule].
	Undescribed(ctx context.Context, q store.DecayQuery) ([]store.Decayed, error)
}

// AuditLog is the role of the audit log that reading takes.
type AuditLog interface {
	History(ctx context.Context, project, factID string) ([]audit.Record, error)
	audit.Archive
	audit.Reports
}

// Service answers over HTTP.
type Service struct {
	config    Config
	deps      Deps
	engine    *retrieval.Engine
	handler   http.Handler
	followers followers
	incognito *incognito          // nil where it is not offered
	patterns  map[string][]string // of the mux, by route
	// unfinished tells [Service.Resume] of a quarantine that is not whole.
	unfinished chan struct{}
	// quarantines counts the requests under way that begin or release one.
	quarantines atomic.Int64
}

// New returns the service, or an error for settings that cannot answer.
func New(config Config, deps Deps) (*Service, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	if deps.Gate == nil {
		return nil, errors.New("query: a gate is required")
	}
	most := memory.DefaultBounds()
	deps.Bounds.Episodes = cmp.Or(deps.Bounds.Episodes, most.Episodes)
	deps.Bounds.Tokens = cmp.Or(deps.Bounds.Tokens, most.Tokens)
	deps.Store, deps.Publisher = guardedStore{deps.Store}, guardedPublisher{deps.Publisher}
	deps.Searcher = guardedSearcher{deps.Searcher, deps.Store}
	deps.Journal, deps.Log = guardedJournal{deps.Journal}, guardedLog{deps.Log}
	engine, err := retrieval.New(config.Search, deps.Searcher, deps.Embedders)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	s := &Service{config: config, deps: deps, engine: engine, unfinished: make(chan struct{}, 1)}
	if config.Incognito {
		s.incognito = &incognito{}
	}
	if s.handler, err = s.routes(); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	return s, nil
}

// Name implements [pipeline.Service].
func (s *Service) Name() string { return "query" }

// Stages implements [pipeline.Service]; queries come over HTTP.
func (s *Service) Stages() []pipeline.Stage { return nil }

// Handler serves every route.
func (s *Service) Handler() http.Handler { return s.handler }
