package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"palimpsest/internal/poll"
	"palimpsest/internal/store"
)

var _ store.Mender = (*Store)(nil)

const (
	// leaseLife is how long the lease of a dead process stays valid.
	leaseLife  = 10 * time.Second
	leaseRenew = 3 * time.Second
	// mendPoll is how often the epoch record is asked whether another has mended.
	mendPoll = 200 * time.Millisecond
)

// Mend implements [store.Mender].
func (s *Store) Mend(ctx context.Context, remedy store.Remedy) error {
	ticker := time.NewTicker(mendPoll)
	defer ticker.Stop()
	for {
		w, err := s.look(ctx)
		if err != nil || w.lost == "" {
			return err
		}
		heal := remedy.Episodes
		if w.mended {
			heal = remedy.Effects
		}
		if heal != nil {
			began, err := s.mend(ctx, w, heal)
			if err != nil {
				return fmt.Errorf("mend: %w", err)
			}
			if began {
				continue
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// mend restores one part, unless another process does.
func (s *Store) mend(ctx context.Context, w epochRecord, heal func(context.Context, store.Store) error) (began bool, err error) {
	release, err := s.lease(ctx, "mend")
	if err != nil || release == nil {
		return false, err
	}
	defer release()
	ids, err := s.runIDs(ctx)
	if err != nil {
		return true, err
	}
	through, err := s.passing(ctx, w)
	if err == nil {
		err = heal(ctx, through)
		if err == nil && w.mended && s.cluster() {
			err = through.listAgain(ctx)
		}
		err = errors.Join(err, through.Close())
	}
	if errors.Is(err, store.ErrLost) {
		return false, nil // something else was lost meanwhile
	}
	if err != nil {
		return true, err
	}
	args := []any{w.lost, "episodes"}
	if w.mended {
		args = []any{w.lost, "effects", rand.Text(), strings.Join(ids, ",")}
	}
	// Where it is refused, something was lost meanwhile, and is mended next.
	_, err = s.run(ctx, mendedScript, []string{s.epochRecordKey()}, args...)
	return true, err
}

// passing returns the store through which a loss is mended. The index and all rows
// of the generation may be lost.
func (s *Store) passing(ctx context.Context, w epochRecord) (*Store, error) {
	through := &Store{cfg: s.cfg, client: s.client, through: true, lost: make(chan struct{})}
	through.held.Store(&tenure{layout: layout{s.cfg.Namespace, w.generation}, pass: w.lost})
	if err := through.prepare(ctx); err != nil {
		return nil, err
	}
	return through, nil
}

// lease keeps other processes from a work until release is called; release is nil if
// another process has the lease.
func (s *Store) lease(ctx context.Context, what string) (release func(), err error) {
	key, token := layout{namespace: s.cfg.Namespace}.lease(what), rand.Text()
	take := func(ctx context.Context, life time.Duration) (bool, error) {
		// It is let go of when the store closes, too.
		v, err := leaseScript.Run(ctx, s.client, []string{key}, token, life.Milliseconds()).Result()
		return v == int64(1), explain(err)
	}
	if held, err := take(ctx, leaseLife); err != nil || !held {
		return nil, err
	}
	stop := aside(context.WithoutCancel(ctx), func(ctx context.Context) {
		_ = poll.Until(ctx, leaseRenew, func() (bool, error) {
			_, _ = take(ctx, leaseLife) // running the work twice is harmless
			return false, nil
		})
	})
	return func() {
		stop()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseRenew)
		defer cancel()
		_, _ = take(last, 0) // it ends by itself
	}, nil
}
