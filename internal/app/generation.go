package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"palimpsest/internal/embed"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
)

// files are generations of a SQLite file.
type files struct {
	cfg Config
	log *slog.Logger
}

func (f files) path() string { return f.cfg.dataPath(memoryFile) }

func (f files) Live(ctx context.Context) (store.Store, error) {
	live, err := openLive(ctx, &f.cfg)
	if err != nil {
		return nil, err
	}
	return live, nil
}

func (f files) Begin(ctx context.Context, embedder embed.Info) (recovery.Draft, error) {
	if err := sqlite.Discard(f.path() + newSuffix); err != nil {
		return nil, err
	}
	made, err := sqlite.Open(ctx, sqlite.Config{Path: f.path() + newSuffix, Building: true, Embedder: embedder, Born: f.cfg.born(), AccessedFrom: putBack(time.Now), Logger: f.log})
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (f files) Inherit(ctx context.Context, made recovery.Draft, live store.Store) error {
	return inherit[*sqlite.Store](ctx, made, live)
}

func (f files) Promote(_ context.Context, made recovery.Draft, live store.Store) (string, error) {
	errs := []error{made.Close()}
	if live != nil {
		errs = append(errs, live.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return sqlite.Replace(f.path(), f.path()+newSuffix)
}

func (f files) Discard(_ context.Context, made recovery.Draft) error {
	return errors.Join(made.Close(), sqlite.Discard(f.path()+newSuffix))
}

// inherit hands a draft what only the live store of its kind knows.
func inherit[S interface {
	Inherit(ctx context.Context, from S) error
}](ctx context.Context, made recovery.Draft, live store.Store) error {
	heir, mine := made.(S)
	from, both := live.(S)
	if !mine || !both {
		return fmt.Errorf("inherit: %T from %T", made, live)
	}
	return heir.Inherit(ctx, from)
}

// indexes are generations in a Redis. Processes that run go on meanwhile, and
// follow once one is promoted.
type indexes struct {
	cfg    Config
	log    *slog.Logger
	repair recovery.Repair
}

func (x indexes) open(ctx context.Context, cfg redis.Config) (*redis.Store, error) {
	cfg.Logger, cfg.Born = x.log, x.cfg.born()
	opened, err := redis.Open(ctx, cfg)
	if errors.Is(err, store.ErrLocked) {
		return nil, &userError{"another rebuild of the memory store is under way", err}
	}
	return opened, err
}

func (x indexes) Live(ctx context.Context) (store.Store, error) {
	live, err := x.open(ctx, x.cfg.redis())
	if err != nil {
		return nil, err
	}
	return live, nil
}

func (x indexes) Begin(ctx context.Context, embedder embed.Info) (recovery.Draft, error) {
	to := x.cfg.redis()
	to.Building, to.Embedder, to.AccessedFrom = true, embedder, putBack(time.Now)
	made, err := x.open(ctx, to)
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (x indexes) Inherit(ctx context.Context, made recovery.Draft, live store.Store) error {
	return inherit[*redis.Store](ctx, made, live)
}

// Promote puts back what came while the generation was built, or waits until those
// who run have done so, before it lets go of the one before.
func (x indexes) Promote(ctx context.Context, made recovery.Draft, live store.Store) (string, error) {
	next, ok := made.(*redis.Store)
	if !ok {
		return "", fmt.Errorf("promote: %T", made)
	}
	err := next.Promote(ctx)
	if err == nil {
		err = next.Mend(ctx, store.Remedy{Episodes: x.repair.StoreAgain, Effects: x.repair.ApplyAgain})
	}
	if err == nil {
		err = next.Retire(ctx)
	}
	errs := []error{err, next.Close()}
	if live != nil {
		errs = append(errs, live.Close())
	}
	return "", errors.Join(errs...)
}

func (x indexes) Discard(ctx context.Context, made recovery.Draft) error {
	next, ok := made.(*redis.Store)
	if !ok {
		return fmt.Errorf("discard: %T", made)
	}
	return errors.Join(next.Discard(ctx), next.Close())
}
