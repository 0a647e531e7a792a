package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"palimpsest/internal/cursor"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
)

// Replay is EPISODES from end to end, see [pipeline.Replay].
type Replay interface {
	Read(ctx context.Context, after uint64, yield func([]*pipeline.Entry) error) (cursor.Cursor, error)
}

// Rebuild stores the episodes behind a stream sequence, in stream order, and then
// the cursors of a reader that has done so. It calls read with each message, and
// returns how many episodes it stored. Nothing is announced: the sweep looks at
// every scope when it starts. The store is a function of the stream: no clock is
// read.
func (s *Service) Rebuild(ctx context.Context, from Replay, after uint64, read func()) (int, error) {
	count := 0
	end, err := from.Read(ctx, after, func(batch []*pipeline.Entry) error {
		fit := make([]*pipeline.Entry, 0, len(batch))
		for _, e := range batch {
			if e.Err == nil { // else it was buried
				fit = append(fit, e)
			}
			read()
		}
		count += s.store(ctx, fit)
		for _, e := range fit {
			if e.Err != nil && !pipeline.IsRefused(e.Err) {
				return e.Err
			}
		}
		return nil
	})
	for _, p := range Partitions() {
		if err == nil {
			err = s.deps.Cursors.SetCursor(ctx, p.Reader, 0, end)
		}
	}
	if err != nil {
		return count, fmt.Errorf("store episodes again: %w", err)
	}
	return count, nil
}

// Reader returns a service that has nothing but [Service.Episodes]. erased is as in [Deps].
func Reader(cfg Config, erased func(project, user string, sequence uint64, arrived time.Time) bool) *Service {
	return &Service{cfg: cfg.WithDefaults(), deps: Deps{Erased: erased}}
}

// Episodes calls yield with each episode that [Service.Rebuild] stores, in the
// order in which it does, repeated ones too, until yield returns an error, which it
// returns.
func (s *Service) Episodes(ctx context.Context, from Replay, yield func(memory.Episode) error) error {
	_, err := from.Read(ctx, 0, func(batch []*pipeline.Entry) error {
		for _, e := range batch {
			it, err := s.itemOf(e)
			if e.Err != nil || err != nil || it.end != nil {
				continue
			}
			if err := yield(it.episode); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read episodes: %w", err)
	}
	return nil
}

// Has reports whether the store has the episode of a message; a message that is
// none, or was refused, decides nothing.
func (s *Service) Has(ctx context.Context, stored store.EpisodeReader, e *pipeline.Entry) (has, decides bool, err error) {
	it, err := s.itemOf(e)
	if e.Err != nil || err != nil || it.end != nil {
		return false, false, nil //nolint:nilerr // it was buried
	}
	_, err = stored.Episode(ctx, it.episode.Scope, it.episode.Source, it.episode.ID)
	if errors.Is(err, store.ErrNotFound) {
		return false, true, nil
	}
	return err == nil, true, err
}
