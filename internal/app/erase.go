package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/embed"
	"palimpsest/internal/erasure"
	"palimpsest/internal/failpoint"
	"palimpsest/internal/store"
	"palimpsest/internal/topology"
	"palimpsest/pkg/api"
	"palimpsest/pkg/scope"
	"palimpsest/services/query"
)

// errErase ends a run, so that the next one begins with the erasure.
var errErase = errors.New("an erasure was asked for")

// errNoRoom: the copies of an erasure would not fit on the disk.
var errNoRoom = errors.New("the disk has too little room to erase: new files are written beside the old ones")

// roomFor returns an error unless the disk has room for copies of the files of a data
// directory. A job that ran out of room would keep every later start from serving.
func roomFor(data string, measure func(dir string) (broker.Space, error)) error {
	size := int64(0)
	err := filepath.WalkDir(data, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				size += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("measure the data: %w", err)
	}
	space, err := measure(data)
	if err != nil {
		return fmt.Errorf("measure the disk: %w", err)
	}
	if space.Free < size {
		return fmt.Errorf("%w: %d MiB are free, %d MiB are stored", errNoRoom, space.Free>>20, size>>20)
	}
	return nil
}

// errPending refuses to work on data of which a part is erased.
var errPending = errors.New("an erasure is not finished: start Palimpsest, or run \"palimpsest erase --resume\", to finish it")

// beyond are what no erasure reaches.
var beyond = []string{
	"copies and backups that were made before: apply this receipt to each before it serves",
	"blocks of the disk that held the old files, until the file system uses them again",
	"what left this data directory: logs, answers, messages to consumers of others",
}

// alone reports whether all streams are in files of this process. Then no other process
// can write to the stores, and an erasure can rewrite everything while this one rests.
func (c Config) alone() bool { return c.NATS.URL == natsEmbedded }

// openErasures opens the erasures of the data directory, and completes a change of
// files that a death interrupted. Where the broker is of others, tombstones of a broker
// that was embedded before stay in force, and a job has to be finished first.
func (c *Config) openErasures() error {
	if !c.alone() {
		return c.openTombstones()
	}
	if err := writable(c.Data); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	book, err := erasure.Open(c.Data)
	if err != nil {
		return err
	}
	c.erasures = book
	return nil
}

func (c *Config) openTombstones() error {
	there, err := erasure.Any(c.Data)
	if err != nil || !there {
		return err
	}
	if c.erasures, err = erasure.Open(c.Data); err != nil {
		return err
	}
	if len(c.erasures.Pending()) > 0 {
		return fmt.Errorf("%w; it needs the embedded broker: nats.url is %s", errPending, config.MaskURL(c.NATS.URL))
	}
	return nil
}

// born is the incarnation of a scope without a row; see [erasure.Book.Born].
func (c Config) born() func(project, user string) uint64 {
	if c.erasures == nil {
		return nil
	}
	return c.erasures.Born
}

// erased is as in [ingest.Deps].
func (c Config) erased() func(project, user string, sequence uint64, arrived time.Time) bool {
	if c.erasures == nil {
		return nil
	}
	return c.erasures.Erased
}

// prepareErasures opens the erasures before anything else is opened.
func (h *process) prepareErasures(context.Context) error {
	if err := h.cfg.openErasures(); err != nil || h.cfg.erasures == nil || len(h.cfg.erasures.Pending()) == 0 {
		return err
	}
	eraser := eraser{h.cfg, h.embedder.Info(), h.now, h.log}
	return eraser.finish()
}

// eraseAsked finishes the erasures that were asked for. Nothing else runs yet.
func (h *process) eraseAsked(ctx context.Context) error {
	if h.cfg.erasures == nil {
		return nil
	}
	_, err := eraser{h.cfg, h.embedder.Info(), h.now, h.log}.run(ctx)
	return err
}

// eraser erases from the files of a data directory that is not in use.
type eraser struct {
	cfg      Config
	embedder embed.Info
	now      func() time.Time
	log      *slog.Logger
}

func (e eraser) broker() broker.EmbeddedConfig {
	return broker.EmbeddedConfig{Dir: e.cfg.dataPath(natsDir), Private: true, Logger: e.log}
}

// finish completes an interrupted change of the files of the streams.
func (e eraser) finish() error {
	if absentDir(e.broker().Dir) {
		return nil
	}
	return broker.ResumeRewrite(e.broker().Dir)
}

func absentDir(dir string) bool {
	_, err := os.Stat(dir)
	return os.IsNotExist(err)
}

// run finishes every pending erasure.
func (e eraser) run(ctx context.Context) ([]erasure.Receipt, error) {
	pending := e.cfg.erasures.Pending()
	if len(pending) == 0 {
		return nil, nil
	}
	e.log.Warn("erasing users, as was asked; nothing is served meanwhile", "erasures", len(pending))
	began := time.Now()
	done, err := e.cfg.erasures.Run(ctx, erasure.Work{
		Keepers: []erasure.Keeper{
			{Name: failpoint.Streams, Erase: e.eraseStreams, Scan: e.scanStreams},
			{Name: failpoint.Memory, Erase: e.eraseMemory, Scan: e.scanMemory},
			{Name: failpoint.Log, Erase: e.eraseLog, Scan: e.scanLog},
			{Name: failpoint.Announced, Erase: e.announce, Scan: nothing},
		},
		Until: e.until, Now: e.now, Unreachable: beyond,
	})
	if err != nil {
		return done, fmt.Errorf("finish an erasure: %w", err)
	}
	e.log.Warn("users are erased", "erasures", len(done), "took", time.Since(began))
	return done, nil
}

func (e eraser) until(ctx context.Context) (uint64, error) {
	if absentDir(e.broker().Dir) {
		return 0, nil
	}
	return broker.LastSequence(ctx, e.broker(), topology.StreamEpisodes)
}

// erasures are what the API asks for. A process ends its run once one is asked for,
// and the next run begins with it.
type erasures struct {
	book  *erasure.Book
	data  string
	now   func() time.Time
	asked chan struct{}
	once  sync.Once
}

var _ query.Erasures = (*erasures)(nil)

// wanted is closed once an erasure was asked for.
func (e *erasures) wanted() <-chan struct{} {
	if e == nil {
		return nil
	}
	return e.asked
}

// Ask implements [query.Erasures].
func (e *erasures) Ask(ctx context.Context, project, user, key string) (string, error) {
	ids, err := e.AskAll(ctx, project, []string{user}, key)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// AskAll implements [query.Erasures]. All jobs are on the disk before the run ends.
func (e *erasures) AskAll(_ context.Context, project string, users []string, key string) (ids []string, err error) {
	if err := roomFor(e.data, broker.Measure); errors.Is(err, errNoRoom) {
		return nil, api.NewProblem(http.StatusInsufficientStorage, api.CodeStorageFull, "", "%v", err)
	} else if err != nil {
		return nil, err
	}
	pending := false
	for n, user := range users {
		of := key
		if of != "" && n > 0 {
			of = fmt.Sprintf("%s/%d", key, n)
		}
		r, err := e.book.Ask(project, user, of, e.now())
		if errors.Is(err, erasure.ErrOther) {
			err = store.ErrMismatch
		}
		if err != nil {
			return ids, err
		}
		ids, pending = append(ids, r.ID), pending || !r.Done()
	}
	if pending {
		e.once.Do(func() { close(e.asked) })
	}
	return ids, nil
}

// Get implements [query.Erasures].
func (e *erasures) Get(_ context.Context, id string) (api.Receipt, error) {
	r, err := e.book.Get(id)
	if errors.Is(err, erasure.ErrUnknown) {
		err = query.ErrNoErasure
	}
	return r, err
}

// Erase erases a user, or the user of a receipt, from the files of a Palimpsest that
// is not running, and finishes the jobs of before. It returns the receipts.
func (inv *Invocation) Erase(data, user string, receipt *erasure.Receipt) ([]erasure.Receipt, error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return nil, err
	}
	if !cfg.alone() {
		return nil, errors.New("erasing works where the broker is of this process; nothing was changed")
	}
	if absentDir(cfg.Data) {
		return nil, fmt.Errorf("data: %s does not exist", cfg.Data)
	}
	log := newLogger(cfg.Log, inv.term.Err)
	if err := cfg.openErasures(); err != nil {
		return nil, err
	}
	embedder, err := cfg.Embedder.open()
	if err != nil {
		return nil, err
	}
	project := inv.flags.Project
	if project == "" {
		project = scope.DefaultProject
	}
	if err := roomFor(cfg.Data, broker.Measure); err != nil {
		return nil, err
	}
	e := eraser{*cfg, embedder.Info(), time.Now, log}
	if err := e.finish(); err != nil { // before there is a job, which the process that runs would do at its next start
		return nil, inUse(*cfg, err)
	}
	switch {
	case receipt != nil:
		_, err = cfg.erasures.AskAgain(*receipt, time.Now())
	case user != "":
		_, err = cfg.erasures.Ask(project, user, "", time.Now())
	}
	if err != nil {
		return nil, err
	}
	done, err := e.run(inv.ctx)
	return done, inUse(*cfg, err)
}

// inUse says what to do about a data directory that another process uses.
func inUse(cfg Config, err error) error {
	if errors.Is(err, broker.ErrInUse) || errors.Is(err, store.ErrLocked) || errors.Is(err, audit.ErrLocked) {
		return fmt.Errorf("%w: Palimpsest runs on %s: stop it, or ask it with --server", plain(cfg, err), cfg.Data)
	}
	return err
}
