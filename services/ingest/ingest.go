package ingest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
)

// Deps is what ingest needs.
type Deps struct {
	Episodes store.EpisodeWriter
	Vectors  store.VectorWriter
	// Embedder's space must be that of the store's index.
	Embedder embed.Embedder
	// Now is the clock; nil means time.Now. It says when an episode was stored,
	// and nothing else.
	Now func() time.Time
}

// Service implements [pipeline.Service].
type Service struct {
	cfg  Config
	deps Deps
	wake chan struct{}
	// stored counts the runs that were stored.
	stored atomic.Uint64
	// The embedding loop alone uses these: seen is what stored was when it last
	// looked.
	seen    uint64
	paused  backoff
	idle    backoff
	resting pause
}

var _ pipeline.Service = (*Service)(nil)

// New wires the service. It refuses an invalid configuration and missing
// dependencies.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Episodes == nil || deps.Vectors == nil || deps.Embedder == nil {
		return nil, errors.New("ingest: needs an episode writer, a vector writer and an embedder")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	cfg = cfg.WithDefaults()
	return &Service{
		cfg:    cfg,
		deps:   deps,
		wake:   make(chan struct{}, 1),
		paused: backoff{first: firstBackoff, most: cfg.EmbedBackoff},
		idle:   backoff{first: cfg.EmbedInterval, most: max(cfg.EmbedInterval, idleMost)},
	}, nil
}

// Name implements [pipeline.Service].
func (*Service) Name() string { return "ingest" }

// Stages implements [pipeline.Service]: one per partition, and the embedding
// loop.
func (s *Service) Stages() []pipeline.Stage {
	stages := make([]pipeline.Stage, 0, Partitions+1)
	for p := range Partitions {
		stages = append(stages, pipeline.Consume(Consumer(p),
			pipeline.OnRun(s.record),
			pipeline.On(s.end),
		))
	}
	return append(stages, pipeline.Clock("ingest-embed", s.cfg.EmbedInterval, s.wake, s.embed))
}

// Consumer is the durable consumer of a partition, from 0.
func Consumer(partition int) string { return fmt.Sprintf("ingest-%02d", partition) }

// Wake makes the embedding loop look at once. It never blocks.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}
