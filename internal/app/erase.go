package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/doctor"
	"palimpsest/internal/embed"
	"palimpsest/internal/engine"
	"palimpsest/internal/erasure"
	"palimpsest/internal/erasure/streams"
	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/transfer"
	"palimpsest/internal/version"
)

// errErase ends a run, so that the next one begins with the erasure.
var errErase = errors.New("an erasure was requested")

// openErasures opens the erasures of the data directory. On a broker of its own, all
// streams are in files of this process: no other one can write to the stores, and an
// erasure can rewrite everything before the services start. Otherwise the process may be
// one of several: tombstones are in force, and a job has to be finished first.
func (c *Config) openErasures() (err error) {
	if c.NATS.Own() {
		return c.openBook()
	}
	if c.erasures, err = erasure.OpenExisting(c.Data); err != nil {
		return err
	}
	if err := c.erasures.Settled(); err != nil {
		return fmt.Errorf("%w; all services must be stopped meanwhile: nats.url is %s", err, config.MaskURL(c.NATS.URL))
	}
	return nil
}

// openBook opens the erasures of the data directory, and makes both where there are none.
func (c *Config) openBook() (err error) {
	if err = doctor.Writable(c.Data); err == nil {
		c.erasures, err = erasure.Create(c.Data, !sqlitefile.Absent(c.dataPath(memoryFile)))
	}
	return err
}

// openSettled is openErasures for a command that needs all jobs finished.
func (c *Config) openSettled() error {
	if err := c.openErasures(); err != nil {
		return err
	}
	return c.erasures.Settled()
}

// room returns an error unless the disk of the data directory has room to erase.
func (c Config) room() error {
	return erasure.Room(c.Data, broker.Free)
}

// erases reports whether the process can erase: no service of another one is meant to
// run. The broker is asked later whether one runs nevertheless.
func (h *process) erases() bool { return h.cfg.NATS.Own() || h.target.entire }

// prepareErasures opens the erasures before anything else is opened.
func (h *process) prepareErasures(context.Context) error {
	open := h.cfg.openErasures
	if h.erases() {
		open = h.cfg.openBook
	}
	err := open()
	if err != nil && !h.cfg.NATS.Own() { // with shared engines only, a process needs no directory otherwise
		h.log.Warn("users cannot be erased: the data directory cannot be used", "error", err)
		err = h.cfg.openErasures()
	}
	if err != nil || len(h.cfg.erasures.Pending()) == 0 {
		return err
	}
	return h.eraser().finish()
}

// eraseAsked finishes the requested erasures before anything else runs.
func (h *process) eraseAsked(ctx context.Context) error {
	if len(h.cfg.erasures.Pending()) == 0 {
		return nil
	}
	return erasure.Serve(ctx, h.cfg.HTTP, version.String(), h.log, passes, func(ctx context.Context) error {
		_, err := h.eraser().run(ctx)
		return err
	})
}

// passes reports whether err ends an attempt to erase, and the next one may succeed: a
// server is away, ClickHouse cannot apply a mutation, or another process reads the streams.
func passes(err error) bool {
	return errors.Is(err, clickhouse.ErrMutation) || errors.Is(err, streams.ErrRead) ||
		engine.Away(err) || errors.Is(err, context.DeadlineExceeded)
}

func (h *process) eraser() eraser { return eraser{h.cfg, h.embedder.Info(), h.now, h.log} }

// Erase adds a job to the erasures of a Palimpsest that is not running, where ask is
// given, and finishes all jobs. It returns the receipts.
func (inv *Invocation) Erase(data string, ask func(*erasure.Book, time.Time) error) (done []erasure.Receipt, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return nil, err
	}
	if cfg.NATS.Own() && absentDir(cfg.Data) {
		return nil, fmt.Errorf("data: %s does not exist", cfg.Data)
	}
	embedder, err := openEmbedder(cfg.Embedder)
	if err == nil {
		err = cfg.openBook()
	}
	if err == nil {
		err = cfg.room()
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = plain(*cfg, err) }()
	e := eraser{*cfg, embedder.Info(), time.Now, cfg.Log.New(inv.Terminal().Err)}
	// Before there is a job, which the process that runs would do at its next start.
	if err := errors.Join(e.finish(), e.still(inv.Context())); err != nil {
		return nil, err
	}
	if ask != nil {
		if err := ask(cfg.erasures, time.Now()); err != nil {
			return nil, err
		}
	}
	return e.run(inv.Context())
}

// eraser opens the files and servers of a data directory that is not in use, to erase
// from them.
type eraser struct {
	cfg      Config
	embedder embed.Info
	now      func() time.Time
	log      *slog.Logger
}

// stopped is the broker of the data directory.
func (e eraser) stopped() broker.Stopped {
	return e.cfg.NATS.Stopped(e.cfg.dataPath(natsDir), e.log)
}

// finish completes an interrupted change of the files of the streams.
func (e eraser) finish() error {
	if dir := e.stopped().Dir; !absentDir(dir) {
		return broker.ResumeRewrite(dir)
	}
	return nil
}

// still returns nil where no service of another process reads the streams.
func (e eraser) still(ctx context.Context) error {
	if e.cfg.NATS.Own() {
		return nil
	}
	remote, err := openRemote(ctx, e.cfg, "erase", e.log)
	if err != nil {
		return err
	}
	return errors.Join(e.streams(remote).Still(ctx), remote.Shutdown(ctx))
}

// streams are those of another broker.
func (e eraser) streams(of *broker.Remote) *streams.Server {
	return streams.Of(of.Conn(), of.JetStream(), e.cfg.NATS.Topology())
}

func absentDir(dir string) bool {
	_, err := os.Stat(dir)
	return os.IsNotExist(err)
}

// run finishes every pending erasure.
func (e eraser) run(ctx context.Context) ([]erasure.Receipt, error) {
	if len(e.cfg.erasures.Pending()) == 0 {
		return nil, nil
	}
	deps := erasure.Deps{Discard: e.discardDrafts, Now: e.now, Logger: e.log}
	deps.Memory = e.backends(e.cfg.Memory, memoryFile, func(ctx context.Context, cfg Config) (io.Closer, error) {
		opened, _, err := openMemory(ctx, cfg, e.embedder, e.now, e.log)
		return opened, err
	})
	deps.Log = e.backends(e.cfg.Audit, auditFile, func(ctx context.Context, cfg Config) (io.Closer, error) {
		opened, _, err := openAudit(ctx, cfg, e.log)
		return opened, err
	})
	if !e.cfg.NATS.Own() {
		remote, err := openRemote(ctx, e.cfg, "erase", e.log)
		if err != nil {
			return nil, err
		}
		defer func() { _ = remote.Shutdown(ctx) }() // it closes the connection
		deps.Streams = append(deps.Streams, e.streams(remote))
	}
	if old := e.stopped(); !absentDir(old.Dir) {
		deps.Streams = append(deps.Streams, old)
	}
	return e.cfg.erasures.Finish(ctx, deps)
}

// backends open the backend that a setting chooses, and the file of the data directory,
// which stays there when another backend is chosen. A file that is not there is left out.
// open opens the memory store or the audit log of a configuration.
func (e eraser) backends(chosen, file string, open func(context.Context, Config) (io.Closer, error)) (all []erasure.Opener) {
	add := func(backend string) {
		cfg := e.cfg
		cfg.Memory, cfg.Audit = backend, backend // open looks at one of them
		all = append(all, func(ctx context.Context) (io.Closer, error) { return open(ctx, cfg) })
	}
	if chosen != backendFile {
		add(chosen)
	}
	if !sqlitefile.Absent(e.cfg.dataPath(file)) {
		add(backendFile)
	}
	return all
}

// discardDrafts removes what a killed rebuild or import left, and the older store where
// there is no present one.
func (e eraser) discardDrafts() error {
	path := e.cfg.dataPath(memoryFile)
	errs := []error{sqlite.Discard(path + sqlite.NewSuffix), os.RemoveAll(e.cfg.dataPath(natsDir) + transfer.DraftSuffix)}
	if sqlitefile.Absent(path) {
		errs = append(errs, sqlite.Discard(path+sqlite.KeptSuffix))
	}
	return errors.Join(errs...)
}
