package sqlite

import (
	"context"
	"fmt"

	"palimpsest/pkg/scope"
)

// draftWrites is how many writes of a file under construction are committed
// together.
const draftWrites = 8192

// draft is the transaction in which a file under construction is written.
type draft struct {
	open   bool
	writes int
	settle bool
	// failed ends the construction: writes that already returned nil may have been
	// undone with it.
	failed error
}

// build runs the group within a transaction that spans many groups.
func (w *writer) build(group []*job) {
	for _, j := range group {
		if j.err = j.ctx.Err(); j.err == nil {
			j.err = w.draw(j)
		}
	}
	if !w.draft.settle && w.draft.writes < draftWrites {
		return
	}
	if err := w.settle(); err != nil {
		failAll(group, err)
	}
}

func (w *writer) draw(j *job) error {
	d := &w.draft
	if d.failed != nil {
		return d.failed
	}
	if !d.open {
		if err := w.exec("BEGIN IMMEDIATE"); err != nil {
			return writeError(err)
		}
		d.open = true
	}
	d.writes++
	if err := j.do(w); err != nil {
		return w.abandon(err)
	}
	return nil
}

func (w *writer) settle() error {
	d := &w.draft
	d.settle = false
	if !d.open || d.failed != nil {
		return d.failed
	}
	if err := w.conclude(); err != nil {
		return w.abandon(err)
	}
	d.open, d.writes = false, 0
	return nil
}

func (w *writer) abandon(err error) error {
	w.draft.failed = writeError(err)
	w.draft.open = false
	w.forget()
	w.after = w.after[:0]
	_ = w.exec("ROLLBACK") // SQLite may have rolled back by itself
	return w.draft.failed
}

// Settle commits all writes so far to a file under construction, so that reads see
// them. Writes after the last Settle are lost when the store closes.
func (s *Store) Settle(ctx context.Context) error {
	return s.write(ctx, func(w *writer) error {
		w.draft.settle = true
		return nil
	})
}

// CountFrom implements [store.EpisodeWriter].
func (s *Store) CountFrom(ctx context.Context, fact scope.Scope, last uint64) error {
	return s.write(ctx, func(w *writer) error {
		row, err := w.makeScope(fact)
		if err != nil {
			return err
		}
		return w.raise(row, last)
	})
}

// ResumeAt sets the revision of a fact scope in a file under construction: the
// next effect is the one behind it.
func (s *Store) ResumeAt(ctx context.Context, fact scope.Scope, revision uint64) error {
	return s.write(ctx, func(w *writer) error {
		row, err := w.makeScope(fact)
		if err != nil {
			return err
		}
		row.revision = revision
		w.change(row)
		return nil
	})
}

// Seal drops what has expired, settles the rest and leaves a file under
// construction whole in itself, without a log beside it, once the store is
// closed.
func (s *Store) Seal(ctx context.Context) error {
	now := micros(s.cfg.Now())
	err := s.write(ctx, func(w *writer) error {
		if err := w.sweepOutcomes(now, -1); err != nil {
			return err
		}
		for _, t := range []string{"requests", "cache"} {
			if err := w.exec(`DELETE FROM `+t+` WHERE expires <= ?`, now); err != nil {
				return fmt.Errorf("sweep %s: %w", t, err)
			}
		}
		w.draft.settle = true
		return nil
	})
	if err != nil {
		return err
	}
	var busy, logged, done int
	if _, err := s.reads.one(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`, nil, &busy, &logged, &done); err != nil {
		return err
	}
	if busy != 0 {
		return fmt.Errorf("sqlite: seal %s: it is being read", s.cfg.Path)
	}
	return nil
}
