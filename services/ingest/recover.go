package ingest

import (
	"context"
	"errors"
	"fmt"

	"palimpsest/internal/failpoint"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// Past is EPISODES as it was read before.
type Past interface {
	// Read calls yield with the messages behind sequence after, in stream
	// order, up to the newest that a reader of a partition was handed, until
	// yield returns an error, which it returns. settled: the partition's reader
	// has acknowledged it and all before it.
	Read(ctx context.Context, after uint64, yield func(in events.Raw, settled bool) error) error
	// Newest calls accept with what the reader of each partition has settled,
	// newest first, until it returns true, and goes on with the next partition;
	// or until it returns an error, which it returns.
	Newest(ctx context.Context, accept func(in events.Raw) (enough bool, err error)) error
}

// errMissing ends the search.
var errMissing = errors.New("an episode is missing")

// Recover stores what was acknowledged on EPISODES and the store lacks: one that
// was restored from an older copy, or lost. Without it, what was said since the
// copy would never be seen again, and what is said next would get ordinals that
// are consolidated already. It must run before any stage does, and returns how
// many episodes it stored.
//
// Each partition was stored in stream order, so a store that has the newest that
// a partition settled lacks nothing of it, however far the partitions are apart;
// what was under way when a process died is no loss, since the broker hands it
// out again. A store that lacks anything is given everything again in stream
// order: every episode gets the ordinal that it had, and those that are there
// change nothing. Where EPISODES has dropped episodes that such a store lacks,
// their places must be left free: count is called before anything is stored, to
// set where each scope goes on counting (see [store.EpisodeWriter]).
func (s *Service) Recover(ctx context.Context, past Past, stored store.EpisodeReader, count func(context.Context) error) (int, error) {
	lacks, err := s.Lacks(ctx, past, stored)
	if err != nil || !lacks {
		return 0, err
	}
	return s.PutBack(ctx, past, count)
}

// PutBack is [Service.Recover] for a store that may lack what is older than the
// newest that a partition settled: one that is spread over servers, of which one
// lost its own.
func (s *Service) PutBack(ctx context.Context, past Past, count func(context.Context) error) (int, error) {
	if err := count(ctx); err != nil {
		return 0, err
	}
	return s.Rebuild(ctx, past, func() {})
}

// Lacks reports whether the store lacks anything that a partition has settled:
// whether [Service.Recover] has work to do, or is at it.
func (s *Service) Lacks(ctx context.Context, past Past, stored store.EpisodeReader) (bool, error) {
	err := past.Newest(ctx, func(raw events.Raw) (bool, error) {
		in, ok := s.readable(raw)
		if !ok {
			return false, nil
		}
		_, err := stored.Episode(ctx, in.Scope, in.Source, in.ID)
		if errors.Is(err, store.ErrNotFound) {
			return false, errMissing
		}
		return true, err
	})
	if errors.Is(err, errMissing) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("compare with what was said: %w", err)
	}
	return false, nil
}

// Rebuild stores everything that was said, in stream order, and returns how many
// episodes it stored: all of them, in a store that is built anew. It calls read
// with each message. The store is a function of the stream: no clock is read.
func (s *Service) Rebuild(ctx context.Context, past Past, read func()) (int, error) {
	count := 0
	err := past.Read(ctx, 0, func(raw events.Raw, _ bool) error {
		added, err := s.again(ctx, raw)
		count += added
		read()
		if added > 0 {
			failpoint.Reach(failpoint.Start, failpoint.Recovered)
		}
		return err
	})
	if err != nil {
		return count, fmt.Errorf("store again what was said: %w", err)
	}
	return count, nil
}

// Said calls yield with each episode that [Service.Rebuild] stores, in the order
// in which it does, repeated ones too, until yield returns an error, which it
// returns.
func (s *Service) Said(ctx context.Context, past Past, yield func(memory.Episode) error) error {
	err := past.Read(ctx, 0, func(raw events.Raw, _ bool) error {
		in, ok := s.readable(raw)
		if !ok {
			return nil
		}
		episode, err := s.cfg.validate(in)
		if err != nil {
			return err
		}
		return yield(episode)
	})
	if err != nil {
		return fmt.Errorf("read what was said: %w", err)
	}
	return nil
}

// readable decodes an episode that may be stored; what was refused the first
// time is refused again.
func (s *Service) readable(raw events.Raw) (events.Event[events.EpisodeRecorded], bool) {
	meta, data, err := events.Decode(raw)
	if err != nil || meta.Kind != events.KindEpisodeRecorded {
		return events.Event[events.EpisodeRecorded]{}, false
	}
	in, err := events.DecodeData[events.EpisodeRecorded](meta, data)
	if err != nil {
		return in, false
	}
	_, err = s.cfg.validate(in)
	return in, err == nil
}

// again does what the partition's reader did with a message. Nothing is
// announced: the sweep looks at every scope when it starts.
func (s *Service) again(ctx context.Context, raw events.Raw) (added int, err error) {
	if in, ok := s.readable(raw); ok {
		episode, err := s.cfg.validate(in)
		if err != nil {
			return 0, err
		}
		put, err := s.deps.Episodes.PutEpisode(ctx, episode)
		if err != nil || put.Known || put.Conflict {
			return 0, err
		}
		return 1, nil
	}
	meta, data, err := events.Decode(raw)
	if err != nil || meta.Kind != events.KindSessionEnded {
		return 0, nil //nolint:nilerr // it was buried
	}
	in, err := events.DecodeData[events.SessionEnded](meta, data)
	if err != nil {
		return 0, nil //nolint:nilerr // it was buried
	}
	if _, err = s.end(ctx, in); err != nil && pipeline.IsReject(err) {
		return 0, nil
	}
	return 0, err
}
