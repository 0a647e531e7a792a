package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/doctor"
	"palimpsest/internal/embed"
	"palimpsest/internal/engine"
	"palimpsest/internal/erasure"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/topology"
	"palimpsest/pkg/scope"
)

// errErase ends a run, so that the next one begins with the erasure.
var errErase = errors.New("an erasure was asked for")

// alone reports whether all streams are in files of this process. Then no other process
// can write to the stores, and an erasure can rewrite everything while this one rests.
func (c Config) alone() bool { return c.NATS.URL == natsEmbedded }

// openErasures opens the erasures of the data directory. Where the broker is of others,
// the process may be one of several: tombstones are in force, and a job has to be finished
// first.
func (c *Config) openErasures() error {
	if !c.alone() {
		return c.openTombstones()
	}
	return c.openBook()
}

// openBook opens the erasures of the data directory, and makes both where there are none.
func (c *Config) openBook() error {
	if err := doctor.Writable(c.Data); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	if err := c.closeDirectory(); err != nil {
		return err
	}
	book, err := erasure.Open(c.Data)
	if err != nil {
		return err
	}
	c.erasures = book
	return nil
}

// closeDirectory keeps other accounts of the machine from a data directory that holds a
// memory. One that belongs to another account, as a volume may, stays as it is.
func (c Config) closeDirectory() error {
	info, err := os.Stat(c.Data)
	if err != nil || info.Mode().Perm()&0o077 == 0 || absent(c.dataPath(memoryFile)) {
		return err
	}
	if err := os.Chmod(c.Data, 0o700); err != nil && !errors.Is(err, fs.ErrPermission) { //nolint:gosec // it is a directory
		return fmt.Errorf("data: %w", err)
	}
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
		return fmt.Errorf("%w; every service must rest meanwhile: nats.url is %s", erasure.ErrPending, config.MaskURL(c.NATS.URL))
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

// room returns an error unless the disk of the data directory has room to erase.
func (c Config) room() error {
	return erasure.Room(c.Data, func(dir string) (int64, error) {
		space, err := broker.Measure(dir)
		return space.Free, err
	})
}

// erases reports whether the process can erase: no service of another one is meant to
// run. Whether one does all the same is asked of the broker.
func (h *process) erases() bool { return h.cfg.alone() || h.target.entire }

// prepareErasures opens the erasures before anything else is opened.
func (h *process) prepareErasures(context.Context) error {
	open := h.cfg.openErasures
	if h.erases() {
		open = h.cfg.openBook
	}
	if err := open(); err != nil || h.cfg.erasures == nil || len(h.cfg.erasures.Pending()) == 0 {
		return err
	}
	eraser := eraser{h.cfg, h.embedder.Info(), h.now, h.log}
	return eraser.finish()
}

// Erase erases a user, or the user of a receipt, from the files of a Palimpsest that
// is not running, and finishes the jobs of before. It returns the receipts.
func (inv *Invocation) Erase(data, user string, receipt *erasure.Receipt) ([]erasure.Receipt, error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return nil, err
	}
	if cfg.alone() && absentDir(cfg.Data) {
		return nil, fmt.Errorf("data: %s does not exist", cfg.Data)
	}
	log := cfg.Log.New(inv.Terminal().Err)
	if err := cfg.openBook(); err != nil {
		return nil, err
	}
	embedder, err := cfg.Embedder.open()
	if err != nil {
		return nil, err
	}
	project := inv.Flags().Project
	if project == "" {
		project = scope.DefaultProject
	}
	if err := cfg.room(); err != nil {
		return nil, err
	}
	e := eraser{*cfg, embedder.Info(), time.Now, log}
	if err := errors.Join(e.finish(), e.still(inv.Context())); err != nil { // before there is a job, which the process that runs would do at its next start
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
	done, err := e.run(inv.Context())
	return done, inUse(*cfg, err)
}

// inUse says what to do about a data directory that another process uses.
func inUse(cfg Config, err error) error {
	if errors.Is(err, broker.ErrInUse) || errors.Is(err, store.ErrLocked) || errors.Is(err, audit.ErrLocked) {
		return fmt.Errorf("%w: Palimpsest runs on %s: stop it, or ask it with --server", plain(cfg, err), cfg.Data)
	}
	return err
}

// eraser opens the files and servers of a data directory that is not in use, to erase
// from them.
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

// still returns nil where no service of another process reads the streams.
func (e eraser) still(ctx context.Context) error {
	if e.cfg.alone() {
		return nil
	}
	remote, decl, err := e.connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(remote.Still(ctx, decl), remote.Shutdown(ctx))
}

// connect opens a broker of others.
func (e eraser) connect(ctx context.Context) (*broker.Remote, topology.Declaration, error) {
	ctx, cancel := context.WithTimeout(ctx, engine.AwayLimit)
	defer cancel()
	decl, to := topology.Declare(e.cfg.topology()), e.cfg.connection("erase")
	to.Logger = e.log
	remote, err := broker.OpenRemote(ctx, to, decl)
	if err != nil {
		return nil, decl, e.cfg.unusable("nats.url", broker.Unreached(ctx, e.cfg.NATS.URL, err))
	}
	return remote, decl, nil
}

func absentDir(dir string) bool {
	_, err := os.Stat(dir)
	return os.IsNotExist(err)
}

// run finishes every pending erasure.
func (e eraser) run(ctx context.Context) ([]erasure.Receipt, error) {
	deps := erasure.Deps{Memory: e.inMemory, Log: e.inLog, Discard: e.discardDrafts, Now: e.now, Logger: e.log}
	if !absentDir(e.broker().Dir) {
		deps.Streams = stoppedStreams(e.broker())
	}
	if e.cfg.alone() || len(e.cfg.erasures.Pending()) == 0 {
		return e.cfg.erasures.Finish(ctx, deps)
	}
	remote, decl, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = remote.Shutdown(ctx) }() // it closes the connection
	deps.Streams = remoteStreams{remote, decl, deps.Streams}
	return e.cfg.erasures.Finish(ctx, deps)
}

// remoteStreams are those of a broker of others, and those of the data directory where
// there was another broker before.
type remoteStreams struct {
	on     *broker.Remote
	decl   topology.Declaration
	before erasure.Streams // nil where there was none
}

func (s remoteStreams) Rewrite(ctx context.Context, job string, edit erasure.Edit) (out erasure.Removed, err error) {
	if err := s.on.Still(ctx, s.decl); err != nil {
		return out, err
	}
	if out.Counts, out.Beyond, err = s.on.Erase(ctx, s.decl, edit); err != nil || s.before == nil {
		return out, err
	}
	old, err := s.before.Rewrite(ctx, job, edit)
	out.Add(old.Counts, old.Beyond)
	return out, err
}

func (s remoteStreams) Count(ctx context.Context, edit erasure.Edit) (uint64, error) {
	left, err := s.on.Count(ctx, s.decl, edit)
	if err != nil || s.before == nil {
		return left, err
	}
	old, err := s.before.Count(ctx, edit)
	return left + old, err
}

func (s remoteStreams) LastSequence(ctx context.Context, stream string) (uint64, error) {
	return s.on.LastSequence(ctx, stream)
}

func (s remoteStreams) Publish(ctx context.Context, subject string, header map[string][]string, body []byte) error {
	_, err := s.on.JetStream().PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: body})
	return err
}

// stoppedStreams are those of a broker that is not running.
type stoppedStreams broker.EmbeddedConfig

func (s stoppedStreams) Rewrite(ctx context.Context, job string, edit erasure.Edit) (out erasure.Removed, err error) {
	out.Counts, err = broker.Rewrite(ctx, broker.EmbeddedConfig(s), job, edit)
	return out, err
}

func (s stoppedStreams) Count(ctx context.Context, edit erasure.Edit) (uint64, error) {
	return broker.Count(ctx, broker.EmbeddedConfig(s), edit)
}

func (s stoppedStreams) LastSequence(ctx context.Context, stream string) (uint64, error) {
	return broker.LastSequence(ctx, broker.EmbeddedConfig(s), stream)
}

func (s stoppedStreams) Publish(ctx context.Context, subject string, header map[string][]string, body []byte) (err error) {
	to, err := broker.StartEmbedded(broker.EmbeddedConfig(s))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Shutdown(context.WithoutCancel(ctx))) }()
	_, err = to.JetStream().PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: body})
	return err
}

// backends are the backend that a setting names and the file of the data directory,
// which stays there when another backend is chosen. A file that is not there is left out.
func (e eraser) backends(chosen, file string) (list []string) {
	if chosen != backendFile {
		list = append(list, chosen)
	}
	if !absent(e.cfg.dataPath(file)) {
		list = append(list, backendFile)
	}
	return list
}

// inMemory calls use with each memory store that there is.
func (e eraser) inMemory(ctx context.Context, use func(store.Eraser) error) error {
	for _, backend := range e.backends(e.cfg.Memory, memoryFile) {
		cfg := e.cfg
		cfg.Memory = backend
		opened, _, err := openMemory(ctx, cfg, e.embedder, e.now, e.log)
		if err != nil {
			return err
		}
		if err := errors.Join(used(opened, use), opened.Close()); err != nil {
			return err
		}
	}
	return nil
}

// inLog calls use with each audit log that there is.
func (e eraser) inLog(ctx context.Context, use func(audit.Eraser) error) error {
	for _, backend := range e.backends(e.cfg.Audit, auditFile) {
		cfg := e.cfg
		cfg.Audit = backend
		opened, _, err := openAudit(ctx, cfg, e.log)
		if err != nil {
			return err
		}
		if err := errors.Join(used(opened, use), opened.Close()); err != nil {
			return err
		}
	}
	return nil
}

// used calls use with a backend, which must be able to erase.
func used[E any](opened any, use func(E) error) error {
	from, ok := opened.(E)
	if !ok {
		return fmt.Errorf("%T cannot erase", opened)
	}
	return use(from)
}

// discardDrafts removes what a killed rebuild or import left, and the older store where
// there is no present one.
func (e eraser) discardDrafts() error {
	path := e.cfg.dataPath(memoryFile)
	errs := []error{sqlite.Discard(path + sqlite.NewSuffix), os.RemoveAll(e.cfg.dataPath(natsDir) + importSuffix)}
	if absent(path) {
		errs = append(errs, sqlite.Discard(path+sqlite.KeptSuffix))
	}
	return errors.Join(errs...)
}
