package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"palimpsest/internal/embed"
	"palimpsest/internal/failpoint"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// maxRun is after how long a run of the loop begins no further round, so that a large
// backlog or a slow embedder neither meets the handler's deadline nor holds up a
// stop; the next run follows at once.
const maxRun = 2 * time.Second

// embed gives vectors to the rows that lack them, in the partitions that this process
// reads, until none does, and takes a change of the embedder on. While episodes are
// being stored it makes one round at a time and rests: it shares the processors and
// the store's writer with them. It rests after a round that is not full, too. An error
// leaves the rest for a later round; rows that lack their vector are found by text.
// The less there was to do, the later it asks again.
func (s *Service) embed(ctx context.Context, now time.Time) ([]events.Payload, error) {
	stored := s.stored.Load()
	busy := stored != s.seen
	s.seen = stored
	if busy {
		s.idle.reset()
	}
	mine := *s.mine.Load()
	if len(mine) == 0 || s.idle.at(now) || s.resting.at(now) {
		return nil, nil
	}
	full := s.cfg.EmbedBatch * s.cfg.EmbedParallel
	for ends := s.deps.Now().Add(maxRun); s.deps.Now().Before(ends); {
		n, err := s.round(ctx, now, full, mine...)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			s.idle.failed(now)
		} else {
			s.idle.reset()
		}
		if n == 0 || n < full && !s.moved.at(now) {
			s.moved.start(now, idleMost) // it may look at all rows
			_, err = s.deps.Vectors.MoveSpaces(ctx)
		}
		if n == 0 || err != nil {
			return nil, err
		}
		if busy || n < full {
			s.resting.start(now, s.restAfter(n))
			return nil, nil
		}
	}
	s.Wake()
	return nil, nil
}

// round embeds up to limit texts and returns how many there were: first those of the
// served space, since searches miss them, then those of the one under construction, so
// that new texts, while they are few, do not hold it up. A space whose embedder fails
// pauses alone: a served one that is down does not hold up the one that is to take its
// place.
func (s *Service) round(ctx context.Context, now time.Time, limit int, partitions ...int) (n int, failed error) {
	for i, space := range s.deps.Vectors.Spaces().All() {
		embedder := s.deps.Embedders(space.Embedder)
		if embedder == nil || n >= limit || s.paused[i].at(now) {
			continue
		}
		pending, err := s.deps.Vectors.PendingVectors(ctx, space.ID, limit-n, partitions...)
		if err != nil {
			return n, errors.Join(failed, fmt.Errorf("list pending vectors: %w", err))
		}
		if len(pending) > 0 {
			err = s.embedAll(ctx, embedder, pending)
		}
		if err != nil {
			s.paused[i].failed(now)
			failed = errors.Join(failed, err)
			continue
		}
		s.paused[i].reset()
		n += len(pending)
	}
	return n, failed
}

// restAfter is the rest after a round of n texts: the interval after a full one, up to
// four times as long after a few, so that texts gather. A round costs the store about
// as much as a text.
func (s *Service) restAfter(n int) time.Duration {
	full := s.cfg.EmbedBatch * s.cfg.EmbedParallel
	return s.cfg.EmbedInterval * time.Duration(4*full-3*min(n, full)) / time.Duration(full)
}

// EmbedAll embeds all texts without vectors, in a store that no other process writes
// to, and calls done with the number of texts of each round. settle makes the writes
// visible to reads.
func (s *Service) EmbedAll(ctx context.Context, settle func(context.Context) error, done func(int)) error {
	for {
		if err := settle(ctx); err != nil {
			return fmt.Errorf("settle vectors: %w", err)
		}
		n, err := s.round(ctx, s.deps.Now(), embedRound)
		if n == 0 || err != nil {
			return err
		}
		done(n)
	}
}

// embedRound is how many texts a round of [Service.EmbedAll] embeds.
const embedRound = 512

// embedAll embeds in batches, several at a time; one that fails does not stop
// the others.
func (s *Service) embedAll(ctx context.Context, embedder embed.Embedder, pending []store.PendingVector) error {
	var g errgroup.Group
	g.SetLimit(s.cfg.EmbedParallel)
	for batch := range slices.Chunk(pending, s.cfg.EmbedBatch) {
		g.Go(func() error { return s.embedBatch(ctx, embedder, batch) })
	}
	return g.Wait()
}

// aloneTries is how often a text is tried by itself before it counts as refused.
const aloneTries = 4

// embedBatch embeds and stores a batch. If the embedder refuses it, or fails but takes
// a harmless text, it is cut in halves, so that a text that cannot be embedded keeps
// only itself from its vector: it is set aside. If the embedder takes nothing, it is
// down, and cutting would only burden it.
func (s *Service) embedBatch(ctx context.Context, embedder embed.Embedder, batch []store.PendingVector) error {
	for tries := 1; ; tries++ {
		err := s.embedOnce(ctx, embedder, batch)
		refused := errors.Is(err, embed.ErrRefused)
		if err == nil || !refused && passes(ctx, embedder, err) {
			return err
		}
		if half := len(batch) / 2; half > 0 {
			return errors.Join(s.embedBatch(ctx, embedder, batch[:half]), s.embedBatch(ctx, embedder, batch[half:]))
		}
		if refused || tries == aloneTries {
			return s.setAside(ctx, batch[0], err)
		}
	}
}

// passes tells whether err is not one of the texts: the store's, a timeout, or that
// of an embedder that is down.
func passes(ctx context.Context, embedder embed.Embedder, err error) bool {
	if !errors.Is(err, errEmbedder) || errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return true
	}
	_, down := embedder.Embed(ctx, []string{"probe"})
	return down != nil
}

// maxReason bounds the reason that is kept of a refused text, in bytes.
const maxReason = 300

// setAside keeps why a text has no vector, so that it is not asked for again.
func (s *Service) setAside(ctx context.Context, p store.PendingVector, reason error) error {
	text := reason.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
	if err := s.deps.Vectors.RefuseVectors(ctx, []store.RefusedVector{{Ref: p.Ref, Reason: text}}); err != nil {
		return fmt.Errorf("set a text aside: %w", err)
	}
	s.deps.Logger.WarnContext(ctx, "the embedder refuses a text: it is found by its words alone",
		"scope", p.Ref.Scope.String(), "id", p.Ref.ID, "reason", text)
	return nil
}

// errEmbedder marks what the embedder answered, as against the store.
var errEmbedder = errors.New("embed")

func (s *Service) embedOnce(ctx context.Context, embedder embed.Embedder, batch []store.PendingVector) error {
	texts := make([]string, len(batch))
	for i, p := range batch {
		texts[i] = p.Text
	}
	values, err := embedder.Embed(ctx, texts)
	if err == nil {
		err = checkVectors(values, len(texts))
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

// checkVectors holds an answer to the contract, as far as the store would refuse the
// vectors of a whole batch for that of one text.
func checkVectors(values [][]float32, texts int) error {
	if len(values) != texts {
		return fmt.Errorf("%d vectors for %d texts", len(values), texts)
	}
	for _, v := range values {
		for _, x := range v {
			if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
				return fmt.Errorf("%w: its vector holds %g", embed.ErrRefused, x)
			}
		}
	}
	return nil
}
