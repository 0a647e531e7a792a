package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"palimpsest/internal/store"
)

// chooseInUse takes up the generation that is in use; in an empty namespace the
// first begins.
func (s *Store) chooseInUse(ctx context.Context) error {
	if err := s.beginNamespace(ctx); err != nil {
		return err
	}
	_, err := s.look(ctx)
	return err
}

func (s *Store) beginNamespace(ctx context.Context) error {
	ids, err := s.runIDs(ctx)
	if err != nil {
		return err
	}
	_, err = s.run(ctx, beginScript, []string{s.epochRecordKey()}, rand.Text(), 1, strings.Join(ids, ","))
	return err
}

func (s *Store) epochRecordKey() string { return layout{namespace: s.cfg.Namespace}.epochRecord() }

// chooseNext begins the generation after the one in use. What a construction that
// did not end left of it is removed.
func (s *Store) chooseNext(ctx context.Context) error {
	if err := s.beginNamespace(ctx); err != nil {
		return err
	}
	release, err := s.lease(ctx, "build")
	if err != nil {
		return err
	}
	if release == nil {
		return fmt.Errorf("redis: a rebuild or an erasure is under way: %w", store.ErrLocked)
	}
	s.finish = append(s.finish, release)
	w, err := s.askEpochRecord(ctx, s.client, nil)
	if err != nil {
		return err
	}
	l := layout{s.cfg.Namespace, w.generation + 1}
	s.held.Store(&tenure{layout: l})
	s.building.Store(true)
	return s.remove(ctx, l)
}

// Promote makes the generation that was under construction the one in use, under
// the alias too. It lacks what came while it was built, so all stores that are
// open, this one included, follow it as one that is lost and is to be mended.
// There must have been no such call before.
func (s *Store) Promote(ctx context.Context) error {
	t := s.tenure()
	if !s.building.Load() {
		return errors.New("redis: promote: the generation is not under construction")
	}
	if _, err := s.call(ctx, "FT.ALIASUPDATE", t.alias(), t.index()); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	if _, err := s.call(ctx, "HSET", t.epochRecord(), "generation", t.generation, "lost", rand.Text(), "mended", "", "seen", ""); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	s.building.Store(false)
	_, err := s.look(ctx)
	return err
}

// TakeOver promotes the generation, and recovers what came while it was built or waits
// until other processes have. Then it retires the generation before, and closes live and
// the store.
func (s *Store) TakeOver(ctx context.Context, live store.Store, remedy store.Remedy) (string, error) {
	err := s.Promote(ctx)
	if err == nil {
		err = s.Mend(ctx, remedy)
	}
	if err == nil {
		err = s.Retire(ctx)
	}
	err = errors.Join(err, s.Close())
	if live != nil {
		err = errors.Join(err, live.Close())
	}
	return "", err
}

// followLimit is how long others may read of a generation that was replaced, in
// pulses.
const followLimit = 3

// Retire removes the generation before this one, once every store that is open
// had the time to follow.
func (s *Store) Retire(ctx context.Context) error {
	w, err := s.look(ctx)
	if err != nil || w.generation < 2 {
		return err
	}
	wait := time.NewTimer(followLimit * s.cfg.Pulse)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.remove(ctx, layout{s.cfg.Namespace, w.generation - 1})
}

// Discard closes and removes a generation under construction, which no process will use.
func (s *Store) Discard(ctx context.Context) error {
	if !s.building.Load() {
		return errors.New("redis: discard: the generation is in use")
	}
	return errors.Join(s.remove(ctx, s.layout()), s.Close())
}

// remove drops rows and index. Rows go in batches, so that the server answers
// others between.
func (s *Store) remove(ctx context.Context, l layout) error {
	if _, err := s.call(ctx, "FT.DROPINDEX", l.index()); err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	return s.deleteKeys(ctx, l)
}
