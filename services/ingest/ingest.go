package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"palimpsest/internal/cursor"
	"palimpsest/internal/embed"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// Deps is what ingest needs.
type Deps struct {
	Episodes store.EpisodeWriter
	Cursors  cursor.Store
	Shares   cursor.Shares
	Vectors  store.VectorWriter
	// Embedders are those of the store's spaces. A space without one waits.
	Embedders embed.Set
	// Now is the clock; nil means time.Now. It says when an episode was stored,
	// and nothing else.
	Now func() time.Time
	// Erased reports whether the episode of a user, at a sequence of EPISODES which
	// took it at a time, was erased: it is not stored again. Nil means that none was.
	Erased func(project, user string, sequence uint64, arrived time.Time) bool
	// Adopt is as in [pipeline.Log].
	Adopt  func(ctx context.Context, p pipeline.Partition) (after uint64, err error)
	Logger *slog.Logger // nil discards
}

// Service implements [pipeline.Service].
type Service struct {
	cfg  Config
	deps Deps
	wake chan struct{}
	// mine are the partitions that this process stores and embeds, none until it was
	// given its share.
	mine atomic.Pointer[[]int]
	// stored counts the batches that were stored.
	stored atomic.Uint64
	// The embedding loop alone uses these: seen is what stored was when it last
	// looked.
	seen    uint64
	paused  [2]backoff // of the served space and of the one under construction
	idle    backoff
	resting pause
	moved   pause // since the spaces were moved while there were texts
}

var _ pipeline.Service = (*Service)(nil)

// New wires the service. It refuses an invalid configuration and missing
// dependencies.
func New(cfg Config, deps Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.Episodes == nil || deps.Cursors == nil || deps.Shares == nil || deps.Vectors == nil || deps.Embedders == nil {
		return nil, errors.New("ingest: needs an episode writer, cursors, shares, a vector writer and embedders")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	cfg = cfg.WithDefaults()
	s := &Service{
		cfg:    cfg,
		deps:   deps,
		wake:   make(chan struct{}, 1),
		paused: [2]backoff{{first: firstBackoff, most: cfg.EmbedBackoff}, {first: firstBackoff, most: cfg.EmbedBackoff}},
		idle:   backoff{first: cfg.EmbedInterval, most: max(cfg.EmbedInterval, idleMost)},
	}
	s.shared(nil)
	return s, nil
}

// shared remembers which partitions the process was given to read.
func (s *Service) shared(readers []string) {
	all, mine := pipeline.Readers(Partitions()), make([]int, len(readers))
	for i, name := range readers {
		mine[i] = slices.Index(all, name)
	}
	s.mine.Store(&mine)
}

// Name implements [pipeline.Service].
func (*Service) Name() string { return "ingest" }

// Stages implements [pipeline.Service]: the log of episodes and the embedding
// loop.
func (s *Service) Stages() []pipeline.Stage {
	return []pipeline.Stage{
		pipeline.ReadLog(pipeline.Log{
			Name: s.Name(), Stream: Stream, Partitions: Partitions(), Cursors: s.deps.Cursors, Shares: s.deps.Shares, Shared: s.shared,
			Handle: s.record, Adopt: s.deps.Adopt,
		}),
		pipeline.Clock("ingest-embed", s.cfg.EmbedInterval, s.wake, s.embed),
	}
}

// Stream is where episodes come in.
const Stream = "EPISODES"

// Partitions are those of the stream. The name of a reader is that of the durable
// consumer that an earlier version read the partition with.
func Partitions() []pipeline.Partition {
	all := make([]pipeline.Partition, events.Partitions)
	for p := range all {
		all[p] = pipeline.Partition{
			Reader: fmt.Sprintf("ingest-%02d", p), Filter: fmt.Sprintf("palimpsest.%s.%d.>", events.NounEpisodes, p),
		}
	}
	return all
}

// Wake makes the embedding loop look at once. It never blocks.
func (s *Service) Wake() {
	select {
	case s.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}
