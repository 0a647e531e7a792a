package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"palimpsest/internal/broker"
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
	s := &sources{inv: inv, cfg: cfg}
	defer func() { err = errors.Join(plain(*cfg, err), s.close()) }()
	for _, open := range []func() error{s.openStreams, s.openStore} {
		if err := open(); err != nil {
			return out, err
		}
	}
	from := transfer.Source{Sources: s.out, JS: s.js, Digest: func(ctx context.Context) (string, error) {
		return digestOf(ctx, cfg, false)
	}}
	return from.Export(inv.ctx, to)
}

// importSuffix names the directory of the streams while they are written.
const importSuffix = ".import"

// ImportAll makes the data directory data of what [Invocation.ExportAll] wrote, and
// builds the memory store from it. There may be no streams and no store yet. If it
// fails or is killed, it leaves none.
func (inv *Invocation) ImportAll(data string, from io.Reader) (out transfer.Counts, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	dir := cfg.dataPath(natsDir)
	if _, err := os.Stat(dir); cfg.NATS.URL != natsEmbedded || cfg.Memory != backendFile || !os.IsNotExist(err) || !absent(cfg.dataPath(memoryFile)) {
		return out, &userError{fmt.Sprintf("data: %s must be a new directory of a Palimpsest in one process", cfg.Data), nil}
	}
	if err := errors.Join(os.RemoveAll(dir+importSuffix), os.MkdirAll(dir+importSuffix, 0o700)); err != nil {
		return out, err
	}
	if out, err = inv.importStreams(*cfg, dir+importSuffix, from); err == nil {
		err = os.Rename(dir+importSuffix, dir)
	}
	if err != nil {
		return out, errors.Join(err, os.RemoveAll(dir+importSuffix))
	}
	logged := !absent(cfg.dataPath(auditFile))
	built, err := inv.Rebuild(data, RebuildMode{})
	if err == nil && built.Rebuilt != out.Digest {
		err = fmt.Errorf("the memory store has the digest %s, the export %s", built.Rebuilt, out.Digest)
	}
	if err != nil { // the next start would serve it
		err = errors.Join(err, os.RemoveAll(dir), sqlite.Discard(cfg.dataPath(memoryFile)))
		if !logged {
			err = errors.Join(err, sqlite.Discard(cfg.dataPath(auditFile)))
		}
	}
	return out, err
}

func (inv *Invocation) importStreams(cfg Config, dir string, from io.Reader) (out transfer.Counts, err error) {
	own, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true, Sync: broker.Sync(cfg.NATS.Sync), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, own.Shutdown(context.WithoutCancel(inv.ctx))) }()
	if err := topology.Apply(inv.ctx, own.JetStream(), topology.Declare(cfg.topology())); err != nil {
		return out, err
	}
	shown := terminal.NewProgress(inv.term.Err)
	step, end := shown.Part("import", 0)
	defer func() { end(); shown.Wait() }()
	return transfer.Import(inv.ctx, own.JetStream(), from, step)
}
