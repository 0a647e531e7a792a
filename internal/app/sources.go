package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/journal"
	auditsqlite "palimpsest/internal/audit/sqlite"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/erasure"
	"palimpsest/internal/memory"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/services/ingest"
)

// verifyPatience is how long a verification waits for what a running Palimpsest
// has not written yet.
const verifyPatience = 10 * time.Second

// sources opens what a verification reads, for reading alone where it is a file.
type sources struct {
	inv     *Invocation
	cfg     *Config
	js      jetstream.JetStream
	out     recovery.Sources
	running bool
	closers []func() error
}

// Sources opens what a verification compares, of the Palimpsest whose data
// directory is data, running or stopped. The caller calls done.
func (inv *Invocation) Sources(data string) (from recovery.Sources, done func() error, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return from, nil, err
	}
	s := &sources{inv: inv, cfg: cfg}
	for _, open := range []func() error{s.openErasures, s.openStreams, s.openStore, s.openLog} {
		if err := open(); err != nil {
			return from, nil, errors.Join(plain(*cfg, err), s.close())
		}
	}
	return s.out, s.close, nil
}

// openErasures reads the tombstones, if there are any.
func (s *sources) openErasures() error {
	there, err := erasure.Any(s.cfg.Data)
	if err != nil || !there {
		return err
	}
	s.cfg.erasures, err = erasure.Open(s.cfg.Data)
	s.out.Born = s.cfg.born()
	return err
}

func (s *sources) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// openStreams connects to the broker that runs, or opens the streams of a stopped
// Palimpsest.
func (s *sources) openStreams() error {
	shown := terminal.NewProgress(s.inv.Terminal().Err)
	s.closers = append(s.closers, func() error { shown.Wait(); return nil })
	s.out.Part = shown.Part
	if err := s.connect(); err != nil {
		return err
	}
	if s.running {
		s.out.Patience = verifyPatience
	}
	s.out.Journal = journal.New(s.js)
	s.out.Episodes = func(ctx context.Context) (recovery.Extent, error) { return extent(ctx, s.js, topology.StreamEpisodes) }
	s.out.Audit = func(ctx context.Context) (recovery.Extent, error) { return extent(ctx, s.js, topology.StreamAudit) }
	return nil
}

func (s *sources) connect() error {
	if s.cfg.NATS.URL == natsEmbedded {
		dir := s.cfg.dataPath(natsDir)
		if _, err := os.Stat(dir); err != nil {
			return &userError{fmt.Sprintf("data: %s holds no streams: %v", s.cfg.Data, Reason(err)), err}
		}
		opened, err := openOwn(*s.cfg, slog.New(slog.DiscardHandler))
		if err == nil {
			s.closers = append(s.closers, func() error { return opened.Shutdown(context.WithoutCancel(s.inv.Context())) })
			s.js = opened.JetStream()
			return nil
		}
		if !errors.Is(err, broker.ErrInUse) {
			return err
		}
	}
	conn, err := s.inv.brokerOf(s.cfg)
	if err != nil {
		return err
	}
	s.running = true
	s.closers = append(s.closers, func() error { conn.Close(); return nil })
	s.js, err = broker.NewJetStream(conn)
	return err
}

func (s *sources) openStore() error {
	ctx := s.inv.Context()
	var opened store.Store
	if s.cfg.Memory == backendFile {
		file, err := sqlite.OpenReading(ctx, s.cfg.dataPath(memoryFile))
		if errors.Is(err, fs.ErrNotExist) {
			return &userError{fmt.Sprintf("data: %s: %v", s.cfg.Data, recovery.ErrAbsent), err}
		}
		if err != nil {
			return err
		}
		opened = file
		s.check("memory.db", file.Check)
	} else {
		live, err := liveOf(ctx, *s.cfg, slog.New(slog.DiscardHandler))
		if err != nil {
			return &engineError{"memory", err}
		}
		opened = live
	}
	s.closers = append(s.closers, opened.Close)
	s.out.Store = opened
	said, err := ingest.New(s.cfg.Ingest, ingest.Deps{
		Episodes: opened, Cursors: opened, Shares: opened, Vectors: opened, Embedders: embed.Only(local.New()),
		Erased: s.cfg.erased(),
	})
	if err != nil {
		return err
	}
	s.out.Said = func(ctx context.Context, yield func(memory.Episode) error) error {
		return said.Episodes(ctx, episodesOf(s.js), yield)
	}
	return nil
}

func (s *sources) openLog() error {
	var opened audit.Log
	if s.cfg.Audit == backendFile {
		file, err := auditsqlite.OpenReading(s.inv.Context(), s.cfg.dataPath(auditFile))
		if err != nil {
			return err
		}
		opened = file
		s.check("audit.db", file.Check)
	} else {
		var err error
		if opened, _, err = openAudit(s.inv.Context(), *s.cfg, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
		s.out.RowsExpire = s.cfg.ClickHouse.Retention > 0
	}
	s.closers = append(s.closers, opened.Close)
	s.out.Log = opened
	return nil
}

func (s *sources) check(name string, check func(context.Context, func(done, all int)) error) {
	if s.out.Checks == nil {
		s.out.Checks = map[string]func(context.Context, func(done, all int)) error{}
	}
	s.out.Checks[name] = check
}
