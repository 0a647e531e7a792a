package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"palimpsest/internal/store"
)

// damage keeps the first sign that pages of the file cannot be read, be it from a
// read, a write or the check of the file. From then on [Store.Ping] returns it.
type damage struct {
	first atomic.Pointer[error]
	// stop ends the check under way; ended is closed once it has.
	stop  context.CancelFunc
	ended chan struct{}
}

// noted keeps err if it says that the file is damaged.
func (s *Store) noted(err error) error {
	if errors.Is(err, store.ErrDamaged) && s.damage.first.CompareAndSwap(nil, &err) {
		s.cfg.Logger.Error("the memory store is damaged", "path", s.cfg.Path, "error", err)
	}
	return err
}

// seen returns the first sign of damage, nil where there was none.
func (d *damage) seen() error {
	if first := d.first.Load(); first != nil {
		return *first
	}
	return nil
}

// checkLater checks the file once in the background.
func (s *Store) checkLater(after time.Duration) {
	ctx, stop := context.WithCancel(context.Background())
	s.damage.stop, s.damage.ended = stop, make(chan struct{})
	go func() {
		defer close(s.damage.ended)
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return
		}
		if err := s.Check(ctx, func(int, int) {}); err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrDamaged) {
			s.cfg.Logger.Warn("check the memory store", "error", err)
		}
	}()
}

func (d *damage) end() {
	if d.stop != nil {
		d.stop()
		<-d.ended
	}
}

// checkShare is which part of the time a check may work: it rests as long as each
// table took.
const checkShare = 2

// Check reads every page of the tables and compares the pages' structure, as
// PRAGMA quick_check does, and calls step with how many of all tables are done. It
// works half of the time at most, and returns [store.ErrDamaged] with the first
// finding.
func (s *Store) Check(ctx context.Context, step func(done, all int)) error {
	tables, err := s.tables(ctx)
	if err != nil {
		return err
	}
	for i, table := range tables {
		began := time.Now()
		if err := s.checkTable(ctx, table); err != nil {
			return err
		}
		step(i+1, len(tables))
		rest := time.NewTimer((checkShare - 1) * time.Since(began))
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
			return ctx.Err()
		}
	}
	return nil
}

func (s *Store) tables(ctx context.Context) (names []string, err error) {
	err = s.reads.each(ctx, `SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 ORDER BY name`, nil, func(row scanner) error {
		var name string
		err := row.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

func (s *Store) checkTable(ctx context.Context, table string) error {
	// A pragma takes no bound value; names come from the schema.
	rows, err := s.reads.db.QueryContext(ctx, fmt.Sprintf(`PRAGMA quick_check("%s")`, table))
	if err != nil {
		return s.noted(readError(err))
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells what matters
	for rows.Next() {
		var finding string
		if err := rows.Scan(&finding); err != nil {
			return s.noted(readError(err))
		}
		if finding != "ok" {
			return s.noted(fmt.Errorf("sqlite: check table %s: %w: %s", table, store.ErrDamaged, finding))
		}
	}
	if err := rows.Err(); err != nil {
		return s.noted(readError(err))
	}
	return nil
}
