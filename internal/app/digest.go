package app

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
)

// memoryFile is the memory store's file in the data directory, auditFile the
// audit log's, natsDir the broker's directory.
const (
	memoryFile = "memory.db"
	auditFile  = "audit.db"
	natsDir    = "nats"
)

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
	mode := memory.ExportFull
	if content {
		mode = memory.ExportContent
	}
	return store.Digest(ctx, live, mode)
}

// absent reports whether no database is at path, or one without a first page.
func absent(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}
