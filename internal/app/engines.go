package app

import (
	"context"
	"errors"
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
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
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
	closers
}

// openEngines opens the streams that the configuration names, and with steps a memory
// store and the audit log.
func openEngines(ctx context.Context, cfg *Config, steps ...func(*engines, context.Context, *Config) error) (*engines, error) {
	e := &engines{checks: map[string]func(context.Context, func(done, all int)) error{}}
	for _, open := range append([]func(*engines, context.Context, *Config) error{(*engines).openStreams}, steps...) {
		if err := open(e, ctx, cfg); err != nil {
			return nil, errors.Join(plain(*cfg, err), e.close(context.WithoutCancel(ctx)))
		}
	}
	return e, nil
}

// openStreams connects to the broker that runs, or opens the streams of a stopped
// Palimpsest.
func (e *engines) openStreams(ctx context.Context, cfg *Config) error {
	if cfg.NATS.URL == natsEmbedded {
		dir := cfg.dataPath(natsDir)
		if _, err := os.Stat(dir); err != nil {
			return engine.Faultf(err, "data: %s holds no streams: %v", cfg.Data, engine.Reason(err))
		}
		opened, err := openOwn(*cfg, silent)
		if err == nil {
			e.later("broker", opened.Shutdown)
			e.js = opened.JetStream()
			return nil
		}
		if !errors.Is(err, broker.ErrInUse) {
			return err
		}
	}
	conn, err := cfg.connect(ctx)
	if err != nil {
		return err
	}
	e.running = true
	e.later("connection", func(context.Context) error { conn.Close(); return nil })
	e.js, err = broker.NewJetStream(conn)
	return err
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
	e.later("memory store", func(context.Context) error { return file.Close() })
	return nil
}

// openStore opens the memory store to be searched.
func (e *engines) openStore(ctx context.Context, cfg *Config) (err error) {
	if e.store, err = liveOf(ctx, *cfg, silent); err == nil {
		e.later("memory store", func(context.Context) error { return e.store.Close() })
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
	e.later("audit log", func(context.Context) error { return e.log.Close() })
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
	return from, func() error { return e.close(context.WithoutCancel(inv.Context())) }, nil
}

// sources are the sources over opened engines, which the caller closes.
func (inv *Invocation) sources(cfg *Config, steps ...func(*engines, context.Context, *Config) error) (from recovery.Sources, e *engines, err error) {
	there, err := erasure.Any(cfg.Data)
	if err == nil && there {
		cfg.erasures, err = erasure.Open(cfg.Data)
	}
	if err != nil {
		return from, nil, err
	}
	if e, err = openEngines(inv.Context(), cfg, steps...); err != nil {
		return from, nil, err
	}
	shown := terminal.NewProgress(inv.Terminal().Err)
	e.later("progress", func(context.Context) error { shown.Wait(); return nil })
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
