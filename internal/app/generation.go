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

// generations is how a backend of the memory store has a new one built beside the
// one that is there, and puts it in its place.
type generations interface {
	// live opens the present generation, with any embedder.
	live(ctx context.Context) (store.Store, error)
	// begin opens an empty one and removes the leftovers of a killed run.
	begin(ctx context.Context, embedder embed.Info) (recovery.Draft, error)
	// inherit copies the rows that no stream holds.
	inherit(ctx context.Context, made recovery.Draft, live store.Store) error
	// promote puts made in the place of live, if there is one, and closes both. It
	// returns where live is kept, if it is.
	promote(ctx context.Context, made recovery.Draft, live store.Store) (kept string, err error)
	// discard closes made and removes it.
	discard(ctx context.Context, made recovery.Draft) error
}

// files are generations of a SQLite file.
type files struct {
	cfg Config
	log *slog.Logger
}

func (f files) path() string { return f.cfg.dataPath(memoryFile) }

func (f files) live(ctx context.Context) (store.Store, error) {
	live, err := openLive(ctx, &f.cfg)
	if err != nil {
		return nil, err
	}
	return live, nil
}

func (f files) begin(ctx context.Context, embedder embed.Info) (recovery.Draft, error) {
	if err := sqlite.Discard(f.path() + newSuffix); err != nil {
		return nil, err
	}
	made, err := sqlite.Open(ctx, sqlite.Config{Path: f.path() + newSuffix, Building: true, Embedder: embedder, Born: f.cfg.born(), AccessedFrom: putBack(time.Now), Logger: f.log})
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (f files) inherit(ctx context.Context, made recovery.Draft, live store.Store) error {
	return inherit[*sqlite.Store](ctx, made, live)
}

func (f files) promote(_ context.Context, made recovery.Draft, live store.Store) (string, error) {
	errs := []error{made.Close()}
	if live != nil {
		errs = append(errs, live.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return "", err
	}
	return sqlite.Replace(f.path(), f.path()+newSuffix)
}

func (f files) discard(_ context.Context, made recovery.Draft) error {
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

func (x indexes) live(ctx context.Context) (store.Store, error) {
	live, err := x.open(ctx, x.cfg.redis())
	if err != nil {
		return nil, err
	}
	return live, nil
}

func (x indexes) begin(ctx context.Context, embedder embed.Info) (recovery.Draft, error) {
	to := x.cfg.redis()
	to.Building, to.Embedder, to.AccessedFrom = true, embedder, putBack(time.Now)
	made, err := x.open(ctx, to)
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (x indexes) inherit(ctx context.Context, made recovery.Draft, live store.Store) error {
	return inherit[*redis.Store](ctx, made, live)
}

// promote puts back what came while the generation was built, or waits until those
// who run have done so, before it lets go of the one before.
func (x indexes) promote(ctx context.Context, made recovery.Draft, live store.Store) (string, error) {
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

func (x indexes) discard(ctx context.Context, made recovery.Draft) error {
	next, ok := made.(*redis.Store)
	if !ok {
		return fmt.Errorf("discard: %T", made)
	}
	return errors.Join(next.Discard(ctx), next.Close())
}
