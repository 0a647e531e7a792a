package app

import (
	"context"
	"errors"
	"io"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/broker"
	"palimpsest/internal/engine"
	"palimpsest/internal/erasure"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/internal/transfer"
)

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
	defer func() { err = errors.Join(plain(*cfg, err), e.close(context.WithoutCancel(inv.Context()))) }()
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
	if cfg.NATS.URL != natsEmbedded || cfg.Memory != backendFile || !absentDir(to.Streams) || !absent(cfg.dataPath(memoryFile)) {
		return out, engine.Faultf(nil, "data: %s must be a new directory of a Palimpsest in one process", cfg.Data)
	}
	if !absent(cfg.dataPath(erasure.KeyFile)) {
		if err := cfg.openErasures(); err != nil {
			return out, err
		}
		if len(cfg.erasures.Pending()) > 0 {
			return out, erasure.ErrPending
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
	return out, cfg.importing(err)
}

// imported is the data directory as an import makes it.
func (c Config) imported() transfer.Directory {
	return transfer.Directory{
		Streams: c.dataPath(natsDir), Mark: c.dataPath("import.unchecked"), Lock: c.dataPath("import.lock"), Logged: !absent(c.dataPath(auditFile)),
		Open: func(ctx context.Context, dir string) (jetstream.JetStream, func(context.Context) error, error) {
			own, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true, Sync: broker.Sync(c.NATS.Sync), Logger: silent})
			if err != nil {
				return nil, nil, err
			}
			if err := topology.Apply(ctx, own.JetStream(), topology.Declare(c.topology())); err != nil {
				return nil, nil, errors.Join(err, own.Shutdown(context.WithoutCancel(ctx)))
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

func (c Config) importing(err error) error {
	if errors.Is(err, transfer.ErrUnderWay) {
		return engine.Faultf(err, "data: an import into %s is under way: wait until it ends", c.Data)
	}
	return err
}

// refuseImport removes an import that ended before it was compared with its export,
// and says so once: a start must not serve it. It refuses to start during an import.
func (h *process) refuseImport(context.Context) error {
	if h.cfg.NATS.URL != natsEmbedded {
		return nil
	}
	found, err := h.cfg.imported().Resume()
	if err == nil && found {
		err = errors.New("an import ended before its memory was compared with the export; nothing of it is kept: import again, or start anew")
	}
	return h.cfg.importing(err)
}
