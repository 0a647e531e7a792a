package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/api"
)

// memoryFile is the memory store's file in the data directory, auditFile the
// audit log's, natsDir the broker's directory.
const (
	memoryFile = "memory.db"
	auditFile  = "audit.db"
	natsDir    = "nats"
)

type digestCommand struct {
	Content bool   `help:"Leave out wall-clock fields, to compare two installations."`
	Data    string `help:"Data directory of a stopped Palimpsest, or any where memory is no file: the memory store is read itself. A running Palimpsest is asked unless given." placeholder:"DIR"`
}

// Run implements the command.
func (c *digestCommand) Run(inv *invocation) error {
	d, err := c.digest(inv)
	if err != nil {
		return err
	}
	return inv.print(d, func(w io.Writer) { _, _ = fmt.Fprintln(w, d.Digest) })
}

func (c *digestCommand) digest(inv *invocation) (api.Digest, error) {
	if c.Data == "" {
		cl, err := inv.client()
		if err != nil {
			return api.Digest{}, err
		}
		return cl.Digest(inv.ctx, c.Content)
	}
	cfg, _, err := inv.configuration(map[string]string{"data": c.Data})
	if err != nil {
		return api.Digest{}, err
	}
	out := api.Digest{Content: c.Content}
	out.Digest, err = digestOf(inv.ctx, cfg, c.Content)
	return out, plain(*cfg, err)
}

// digestOf reads the memory store itself.
func digestOf(ctx context.Context, cfg *Config, content bool) (sum string, err error) {
	live, err := liveOf(ctx, *cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, live.Close()) }()
	mode := memory.ExportFull
	if content {
		mode = memory.ExportContent
	}
	return store.Digest(ctx, live, mode)
}

// liveOf opens the memory store that the configuration names, with any embedder.
func liveOf(ctx context.Context, cfg Config, log *slog.Logger) (store.Store, error) {
	if cfg.Memory == backendFile {
		return files{cfg: cfg, log: log}.live(ctx)
	}
	return indexes{cfg: cfg, log: log}.live(ctx)
}

// openLive opens the existing memory store, with any embedder; it creates none.
func openLive(ctx context.Context, cfg *Config) (*sqlite.Store, error) {
	path := cfg.dataPath(memoryFile)
	if absent(path) {
		return nil, fmt.Errorf("data: %s: %w", path, errAbsent)
	}
	return sqlite.Open(ctx, sqlite.Config{Path: path})
}

// absent reports whether no database is at path, or one without a first page.
func absent(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// errAbsent means that there is no store to read.
var errAbsent = errors.New("there is no memory store")
