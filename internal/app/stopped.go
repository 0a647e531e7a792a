package app

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/journal"
	auditsqlite "palimpsest/internal/audit/sqlite"
	"palimpsest/internal/broker"
	"palimpsest/internal/engine"
	"palimpsest/internal/erasure"
	"palimpsest/internal/memory"
	"palimpsest/internal/recovery"
	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
	"palimpsest/internal/transfer"
)

// verifyPatience is how long a verification waits for what a running Palimpsest
// has not written yet.
const verifyPatience = 10 * time.Second

// silent is the log of commands that only read.
var silent = slog.New(slog.DiscardHandler)

// engines are those of a Palimpsest, running or stopped, open to be read.
type engines struct {
	js     jetstream.JetStream
	store  store.Store
	log    audit.Log
	checks map[string]func(context.Context, func(done, all int)) error // of files
	// running: another process has the streams.
	running bool
	engine.Closers
}

// openEngines opens the streams that the configuration names, and with steps a memory
// store and the audit log.
func openEngines(ctx context.Context, cfg *Config, steps ...func(*engines, context.Context, *Config) error) (*engines, error) {
	e := &engines{checks: map[string]func(context.Context, func(done, all int)) error{}}
	for _, open := range append([]func(*engines, context.Context, *Config) error{(*engines).openStreams}, steps...) {
		if err := open(e, ctx, cfg); err != nil {
			return nil, errors.Join(plain(*cfg, err), e.Close(context.WithoutCancel(ctx)))
		}
	}
	return e, nil
}

// openStreams connects to the broker that runs, or opens the streams of a stopped
// Palimpsest.
func (e *engines) openStreams(ctx context.Context, cfg *Config) error {
	if cfg.NATS.Own() {
		dir := cfg.dataPath(natsDir)
		if _, err := os.Stat(dir); err != nil {
			return engine.Faultf(err, "data: %s holds no streams: %v", cfg.Data, engine.Reason(err))
		}
		opened, err := openOwn(*cfg, silent)
		if err == nil {
			e.Later("broker", opened.Shutdown)
			e.js = opened.JetStream()
			return nil
		}
		if !errors.Is(err, broker.ErrInUse) {
			return err
		}
	}
	js, done, err := cfg.jetStream(ctx)
	if err != nil {
		return err
	}
	e.js, e.running = js, true
	e.Later("connection", func(context.Context) error { done(); return nil })
	return nil
}

// readStore opens the memory store, which a process may have open, to be compared.
func (e *engines) readStore(ctx context.Context, cfg *Config) error {
	if cfg.Memory != backendFile {
		if err := e.openStore(ctx, cfg); err != nil {
			return cfg.unusable("memory", err)
		}
		return nil
	}
	file, err := sqlite.OpenReading(ctx, cfg.dataPath(memoryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return engine.Faultf(err, "data: %s: %v", cfg.Data, recovery.ErrAbsent)
	}
	if err != nil {
		return err
	}
	e.store, e.checks[memoryFile] = file, file.Check
	e.Later("memory store", func(context.Context) error { return file.Close() })
	return nil
}

// openStore opens the memory store to be searched.
func (e *engines) openStore(ctx context.Context, cfg *Config) (err error) {
	if e.store, err = liveOf(ctx, *cfg, silent); err == nil {
		e.Later("memory store", func(context.Context) error { return e.store.Close() })
	}
	return err
}

func (e *engines) openLog(ctx context.Context, cfg *Config) (err error) {
	if cfg.Audit != backendFile {
		if e.log, _, err = openAudit(ctx, *cfg, silent); err != nil {
			return err
		}
	} else {
		file, err := auditsqlite.OpenReading(ctx, cfg.dataPath(auditFile))
		if err != nil {
			return err
		}
		e.log, e.checks[auditFile] = file, file.Check
	}
	e.Later("audit log", func(context.Context) error { return e.log.Close() })
	return nil
}

// Sources opens what a verification compares, of the Palimpsest whose data
// directory is data, running or stopped. The caller calls done.
func (inv *Invocation) Sources(data string) (from recovery.Sources, done func() error, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return from, nil, err
	}
	from, e, err := inv.sources(cfg, (*engines).readStore, (*engines).openLog)
	if err != nil {
		return from, nil, err
	}
	return from, func() error { return e.Close(context.WithoutCancel(inv.Context())) }, nil
}

// sources are the sources over opened engines, which the caller closes.
func (inv *Invocation) sources(cfg *Config, steps ...func(*engines, context.Context, *Config) error) (from recovery.Sources, e *engines, err error) {
	if cfg.erasures, err = erasure.OpenExisting(cfg.Data); err != nil {
		return from, nil, err
	}
	if e, err = openEngines(inv.Context(), cfg, steps...); err != nil {
		return from, nil, err
	}
	shown := terminal.NewProgress(inv.Terminal().Err)
	e.Later("progress", func(context.Context) error { shown.Wait(); return nil })
	from = recovery.Sources{
		Store: e.store, Journal: journal.New(e.js), Log: e.log, Episodes: episodesOf(e.js), Effects: effectsOf(e.js), Ingest: cfg.Ingest,
		Erased: cfg.erasures.Erased, Born: cfg.erasures.Born,
		Checks: e.checks, Expires: cfg.expires, Part: shown.Part,
	}
	if e.running {
		from.Patience = verifyPatience
	}
	return from, e, nil
}

// Digest reads the memory store of the data directory itself. If content is set, it
// leaves out wall-clock fields.
func (inv *Invocation) Digest(data string, content bool) (string, error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return "", err
	}
	sum, err := digestOf(inv.Context(), cfg, content)
	return sum, plain(*cfg, err)
}

// digestOf reads the memory store itself.
func digestOf(ctx context.Context, cfg *Config, content bool) (sum string, err error) {
	live, err := liveOf(ctx, *cfg, silent)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, live.Close()) }()
	return store.Digest(ctx, live, memory.ModeOf(content))
}

// ExportAll writes all episodes and all records of AUDIT, of the Palimpsest whose
// data directory is data. It must be idle or stopped: the digest is that of its store
// at the end. An AUDIT that was trimmed is refused.
func (inv *Invocation) ExportAll(data string, to io.Writer) (out transfer.Counts, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	sources, e, err := inv.sources(cfg, (*engines).readStore)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(plain(*cfg, err), e.Close(context.WithoutCancel(inv.Context()))) }()
	from := transfer.Source{Sources: sources, JS: e.js, Digest: func(ctx context.Context) (string, error) {
		return digestOf(ctx, cfg, false)
	}}
	return from.Export(inv.Context(), to)
}

// ImportAll makes the data directory data of what [Invocation.ExportAll] wrote, and
// builds the memory store from it. There may be no streams and no store yet. If it
// fails or is killed, it leaves none.
func (inv *Invocation) ImportAll(data string, from io.Reader) (out transfer.Counts, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	to := cfg.imported()
	if !cfg.NATS.Own() || cfg.Memory != backendFile || !absentDir(to.Streams) || !sqlitefile.Absent(cfg.dataPath(memoryFile)) {
		return out, engine.Faultf(nil, "data: %s must be a new directory of a Palimpsest in one process", cfg.Data)
	}
	if !sqlitefile.Absent(cfg.dataPath(erasure.KeyFile)) {
		if err := cfg.openSettled(); err != nil {
			return out, err
		}
	}
	shown := terminal.NewProgress(inv.Terminal().Err)
	step, end := shown.Part("import", 0)
	to.Rebuild = func() (string, error) {
		end()
		shown.Wait()
		built, err := inv.Rebuild(data, recovery.Mode{})
		return built.Rebuilt, err
	}
	out, err = to.Import(inv.Context(), from, cfg.erasures, step)
	end()
	shown.Wait()
	return out, err
}

// imported is the data directory as an import makes it.
func (c Config) imported() transfer.Directory {
	return transfer.Directory{
		Data: c.Data, Streams: c.dataPath(natsDir), Mark: c.dataPath("import.unchecked"), Lock: c.dataPath("import.lock"), Logged: !sqlitefile.Absent(c.dataPath(auditFile)),
		Open: func(ctx context.Context, dir string) (jetstream.JetStream, func(context.Context) error, error) {
			own, err := c.NATS.StartPrivate(dir, silent)
			if err != nil {
				return nil, nil, err
			}
			return own.JetStream(), own.Shutdown, nil
		},
		Discard: func(logged bool) error {
			err := sqlite.Discard(c.dataPath(memoryFile))
			if !logged {
				err = errors.Join(err, sqlite.Discard(c.dataPath(auditFile)))
			}
			return err
		},
	}
}

// refuseImport removes an import that ended before it was compared with its export, and
// reports it once: a start must not serve it. It refuses to start during an import.
func (h *process) refuseImport(context.Context) error {
	if h.cfg.NATS.Own() {
		return h.cfg.imported().Resume()
	}
	return nil
}
