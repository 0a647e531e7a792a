package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/gofrs/flock"

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
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return out, err
	}
	done, err := cfg.lockImport()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := errors.Join(os.RemoveAll(dir+importSuffix), os.MkdirAll(dir+importSuffix, 0o700)); err != nil {
		return out, err
	}
	if out, err = inv.importStreams(*cfg, dir+importSuffix, from); err == nil {
		if err = cfg.markImport(); err == nil {
			err = os.Rename(dir+importSuffix, dir)
		}
	}
	if err != nil {
		return out, errors.Join(err, os.RemoveAll(dir+importSuffix), os.RemoveAll(cfg.dataPath(importMark)))
	}
	built, err := inv.Rebuild(data, recovery.Mode{})
	if err == nil && out.Erased == 0 && built.Rebuilt != out.Digest {
		err = fmt.Errorf("the memory store has the digest %s, the export %s", built.Rebuilt, out.Digest)
	}
	if err != nil { // the next start would serve it
		_, left := cfg.dropImport()
		return out, errors.Join(err, left)
	}
	out.Digest = built.Rebuilt
	return out, os.Remove(cfg.dataPath(importMark))
}

// importMark is a file of a data directory whose import was not compared with its
// export yet. It holds importLogged if there was an audit log before.
const (
	importMark   = "import.unchecked"
	importLogged = "logged"
)

// markImport writes the mark, before the streams have their name.
func (c Config) markImport() error {
	text := ""
	if !absent(c.dataPath(auditFile)) {
		text = importLogged
	}
	f, err := os.OpenFile(c.dataPath(importMark), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// dropImport removes what an import left that was not compared with its export, and
// reports whether there was any.
func (c Config) dropImport() (bool, error) {
	logged, err := os.ReadFile(c.dataPath(importMark))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	err = errors.Join(err, os.RemoveAll(c.dataPath(natsDir)), sqlite.Discard(c.dataPath(memoryFile)))
	if string(logged) != importLogged {
		err = errors.Join(err, sqlite.Discard(c.dataPath(auditFile)))
	}
	if err != nil {
		return true, fmt.Errorf("remove an import: %w", err)
	}
	return true, os.Remove(c.dataPath(importMark))
}

// importLock is a file of a data directory that an import locks until it is compared with
// its export.
const importLock = "import.lock"

// lockImport makes the data directory that of an import of this process; done ends that.
func (c Config) lockImport() (done func() error, err error) {
	lock := flock.New(c.dataPath(importLock), flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err == nil && !held {
		err = engine.Faultf(nil, "data: an import into %s is under way: wait until it ends", c.Data)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() error { return errors.Join(os.Remove(lock.Path()), lock.Close()) }, nil
}

// refuseImport removes an import that ended before it was compared with its export,
// and says so once: a start must not serve it. It refuses to start during an import.
func (h *process) refuseImport(context.Context) error {
	if h.cfg.NATS.URL != natsEmbedded {
		return nil
	}
	if _, err := os.Stat(h.cfg.dataPath(importLock)); err == nil {
		done, err := h.cfg.lockImport()
		if err == nil { // it died
			err = done()
		}
		if err != nil {
			return err
		}
	}
	found, err := h.cfg.dropImport()
	if err == nil && found {
		err = errors.New("an import ended before its memory was compared with the export; nothing of it is kept: import again, or start anew")
	}
	return err
}

func (inv *Invocation) importStreams(cfg Config, dir string, from io.Reader) (out transfer.Counts, err error) {
	own, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true, Sync: broker.Sync(cfg.NATS.Sync), Logger: silent})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, own.Shutdown(context.WithoutCancel(inv.Context()))) }()
	if err := topology.Apply(inv.Context(), own.JetStream(), topology.Declare(cfg.topology())); err != nil {
		return out, err
	}
	shown := terminal.NewProgress(inv.Terminal().Err)
	step, end := shown.Part("import", 0)
	defer func() { end(); shown.Wait() }()
	var gone transfer.Erasures
	if cfg.erasures != nil {
		gone = cfg.erasures
	}
	return transfer.Import(inv.Context(), own.JetStream(), from, gone, step)
}
