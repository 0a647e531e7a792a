package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/clickhouse"
	auditsqlite "palimpsest/internal/audit/sqlite"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
)

// validateBackends names the backend that cannot be used.
func (c Config) validateBackends() error {
	if c.Memory != backendFile {
		return fmt.Errorf("memory: %q is not a backend of this version, which has only sqlite", config.MaskURL(c.Memory))
	}
	if c.Audit == backendFile {
		return nil
	}
	if !strings.Contains(c.Audit, "://") {
		return fmt.Errorf("audit: %q is neither sqlite nor the URL of a ClickHouse", c.Audit)
	}
	if err := c.clickHouse().Validate(); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

func (c Config) clickHouse() clickhouse.Config { return clickhouse.Config{DSN: c.Audit} }

// openAudit opens the audit log that the configuration names. gone is closed
// when a file of it vanishes; nil where it has none.
func openAudit(ctx context.Context, cfg Config) (log audit.Log, gone <-chan struct{}, err error) {
	if cfg.Audit != backendFile {
		log, err := openClickHouse(ctx, cfg.clickHouse())
		if err != nil {
			return nil, nil, err
		}
		return log, nil, nil
	}
	file, err := auditsqlite.Open(ctx, auditsqlite.Config{
		Path: cfg.dataPath(auditFile), Full: cfg.NATS.Sync == string(broker.SyncAlways),
	})
	if err != nil {
		return nil, nil, err
	}
	return file, file.Gone(), nil
}

// awayLimit bounds how long a start waits for a server that is away, perhaps
// because it starts too.
const awayLimit = 30 * time.Second

func openClickHouse(ctx context.Context, cfg clickhouse.Config) (*clickhouse.Log, error) {
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for began := time.Now(); ; {
		log, err := clickhouse.Open(ctx, cfg)
		if away := (*net.OpError)(nil); err == nil || !errors.As(err, &away) || time.Since(began) > awayLimit {
			return log, err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
