package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/failpoint"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// maxRounds bounds one run of the loop, so that a large backlog or a slow
// embedder does not meet the handler's deadline; the next run follows at once.
const maxRounds = 32

// embed gives vectors to what lacks them until nothing does. While episodes are
// being stored it makes one round at a time and rests: it shares the processors
// and the store's writer with them. An error leaves the rest for a later round;
// rows that lack their vector are found by text. The less there was to do, the later
// it asks again.
func (s *Service) embed(ctx context.Context, now time.Time) ([]events.Payload, error) {
	stored := s.stored.Load()
	busy := stored != s.seen
	s.seen = stored
	if busy {
		s.idle.reset()
	}
	if s.paused.at(now) || s.idle.at(now) || busy && s.resting.at(now) {
		return nil, nil
	}
	for range maxRounds {
		pending, err := s.deps.Vectors.PendingVectors(ctx, s.cfg.EmbedBatch*s.cfg.EmbedParallel)
		if err != nil {
			return nil, fmt.Errorf("list pending vectors: %w", err)
		}
		if len(pending) == 0 {
			s.paused.reset()
			s.idle.failed(now)
			return nil, nil
		}
		s.idle.reset()
		if err := s.embedAll(ctx, pending); err != nil {
			s.paused.failed(now)
			return nil, err
		}
		if busy {
			s.resting.start(now, s.restAfter(len(pending)))
			return nil, nil
		}
	}
	s.Wake()
	return nil, nil
}

// restAfter is the rest after a round of n texts: the interval after a full one,
// hardly any after the few that somebody just said.
func (s *Service) restAfter(n int) time.Duration {
	return s.cfg.EmbedInterval * time.Duration(n) / time.Duration(s.cfg.EmbedBatch*s.cfg.EmbedParallel)
}

// EmbedAll gives vectors to all that lacks them, in a store that nobody else
// writes to, and calls done with how many each round embedded. settle makes what
// was written visible to reads.
func (s *Service) EmbedAll(ctx context.Context, settle func(context.Context) error, done func(int)) error {
	for {
		if err := settle(ctx); err != nil {
			return fmt.Errorf("settle vectors: %w", err)
		}
		pending, err := s.deps.Vectors.PendingVectors(ctx, embedRound)
		if err != nil {
			return fmt.Errorf("list pending vectors: %w", err)
		}
		if len(pending) == 0 {
			return nil
		}
		if err := s.embedAll(ctx, pending); err != nil {
			return err
		}
		done(len(pending))
	}
}

// embedRound is how many texts a round of [Service.EmbedAll] embeds.
const embedRound = 512

// embedAll embeds in batches, several at a time; one that fails does not stop
// the others.
func (s *Service) embedAll(ctx context.Context, pending []store.PendingVector) error {
	var g errgroup.Group
	g.SetLimit(s.cfg.EmbedParallel)
	for batch := range slices.Chunk(pending, s.cfg.EmbedBatch) {
		g.Go(func() error { return s.embedBatch(ctx, batch) })
	}
	return g.Wait()
}

// embedBatch embeds and stores a batch. If the embedder refuses it but takes a
// harmless text, it is cut in halves, so that a text that cannot be embedded
// keeps only itself from its vector. If it takes nothing, it is down, and
// cutting would only burden it.
func (s *Service) embedBatch(ctx context.Context, batch []store.PendingVector) error {
	err := s.embedOnce(ctx, batch)
	if err == nil || len(batch) == 1 || ctx.Err() != nil || !errors.Is(err, errEmbedder) {
		return err
	}
	if _, down := s.deps.Embedder.Embed(ctx, []string{"probe"}); down != nil {
		return err
	}
	half := len(batch) / 2
	return errors.Join(s.embedBatch(ctx, batch[:half]), s.embedBatch(ctx, batch[half:]))
}

// errEmbedder marks what the embedder answered, as against the store.
var errEmbedder = errors.New("embed")

func (s *Service) embedOnce(ctx context.Context, batch []store.PendingVector) error {
	texts := make([]string, len(batch))
	for i, p := range batch {
		texts[i] = p.Text
	}
	values, err := s.deps.Embedder.Embed(ctx, texts)
	if err == nil && len(values) != len(texts) {
		err = fmt.Errorf("%d vectors for %d texts", len(values), len(texts))
	}
	if err != nil {
		return fmt.Errorf("%w %d texts: %w", errEmbedder, len(texts), err)
	}
	vectors := make([]store.Vector, len(batch))
	for i, p := range batch {
		vectors[i] = store.Vector{Ref: p.Ref, Values: values[i]}
	}
	if err := s.deps.Vectors.PutVectors(ctx, vectors); err != nil {
		return fmt.Errorf("store vectors: %w", err)
	}
	failpoint.Reach(failpoint.Ingest, failpoint.Embedded)
	return nil
}
