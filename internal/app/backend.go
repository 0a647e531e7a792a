package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/clickhouse"
	auditsqlite "palimpsest/internal/audit/sqlite"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/embed"
	"palimpsest/internal/engine"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
)

// validateBackends names the backends that cannot be used.
func (c Config) validateBackends() error {
	var errs []error
	if c.Memory != backendFile {
		if scheme, _, _ := strings.Cut(c.Memory, "://"); scheme != "redis" && scheme != "rediss" {
			errs = append(errs, fmt.Errorf("memory: %q is neither sqlite nor the URL of a Redis", config.MaskURL(c.Memory)))
		} else if err := c.redis().Validate(); err != nil {
			errs = append(errs, fmt.Errorf("memory: %w", err))
		}
	}
	if c.Audit != backendFile {
		if !strings.Contains(c.Audit, "://") {
			errs = append(errs, fmt.Errorf("audit: %q is neither sqlite nor the URL of a ClickHouse", config.MaskURL(c.Audit)))
		} else if err := c.clickHouse().Validate(); err != nil {
			errs = append(errs, fmt.Errorf("audit: %w", err))
		}
	}
	if err := c.Retention.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("retention: %w", err))
	}
	return errors.Join(errs...)
}

func (c Config) clickHouse() clickhouse.Config {
	out := c.ClickHouse
	out.DSN, out.Told = c.Audit, c.Retention
	return out
}

// expires reports whether the audit log keeps the record of a delta for a time only.
func (c Config) expires(d events.Delta) bool {
	return c.Audit != backendFile && c.ClickHouse.Retention > 0 || c.Retention.Expires(d)
}

func (c Config) redis() redis.Config {
	out := c.Redis
	out.URL = c.Memory
	return out
}

// checkAfter is when a file of the memory store is checked for damage: a start has
// the machine for itself before.
const checkAfter = 2 * time.Second

// openMemory opens the memory store that the configuration names. gone is closed
// when a file of it vanishes; nil where it has none.
func openMemory(ctx context.Context, cfg Config, embedder embed.Info, now func() time.Time, log *slog.Logger) (
	memory store.Store, gone <-chan struct{}, err error,
) {
	if cfg.Memory != backendFile {
		to := cfg.redis()
		to.Embedder, to.Now, to.AccessedFrom, to.Logger, to.Born = embedder, now, store.PutBack(now), log, cfg.erasures.Born
		err := cfg.await(ctx, log, "memory", func() error {
			if err := redis.Reach(ctx, to); err != nil {
				return err
			}
			opened, err := redis.Open(ctx, to)
			if err == nil {
				memory = opened
			}
			return err
		})
		return memory, nil, err
	}
	synchronous := "normal"
	if cfg.NATS.Sync == broker.SyncAlways {
		synchronous = "full"
	}
	file, err := sqlite.Open(ctx, sqlite.Config{
		Path: cfg.dataPath(memoryFile), Synchronous: synchronous, Embedder: embedder, Now: now, Logger: log,
		Born: cfg.erasures.Born, AccessedFrom: store.PutBack(now), CheckAfter: checkAfter,
		VectorMemory: cfg.cacheMemory(4, sqlite.DefaultVectorMemory), TextMemory: cfg.cacheMemory(16, sqlite.DefaultTextMemory),
	})
	if err != nil {
		return nil, nil, err
	}
	return file, file.Gone(), nil
}

// cacheMemory is the size in bytes of a cache that may take a part of the memory
// limit, at most usual.
func (c Config) cacheMemory(service int, usual int64) int64 {
	if c.MemoryLimit == 0 {
		return usual
	}
	return min(usual, int64(c.MemoryLimit)<<20/int64(service))
}

// openAudit opens the audit log that the configuration names. gone is closed
// when a file of it vanishes; nil where it has none.
func openAudit(ctx context.Context, cfg Config, log *slog.Logger) (kept audit.Log, gone <-chan struct{}, err error) {
	if cfg.Audit != backendFile {
		err := cfg.await(ctx, log, "audit", func() error {
			opened, err := clickhouse.Open(ctx, cfg.clickHouse())
			if err == nil {
				kept = opened
			}
			return err
		})
		return kept, nil, err
	}
	file, err := auditsqlite.Open(ctx, auditsqlite.Config{
		Path: cfg.dataPath(auditFile), Full: cfg.NATS.Sync == broker.SyncAlways, Retention: cfg.Retention,
	})
	if err != nil {
		return nil, nil, err
	}
	return file, file.Gone(), nil
}

// await opens the server that a setting names, which may be away for a while.
func (c Config) await(ctx context.Context, log *slog.Logger, setting string, open func() error) error {
	err := engine.Await(ctx, engine.Away, func(err error) {
		log.Warn("waiting for a server", "setting", setting, "url", config.MaskURL(c.engine(setting)), "error", engine.Reason(err))
	}, open)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return c.unusable(setting, err)
	}
	return nil
}

// openBroker starts the broker of this process, or connects by a name to another one.
func openBroker(ctx context.Context, cfg Config, name string, log *slog.Logger) (broker.Broker, error) {
	if cfg.NATS.Own() {
		return cfg.NATS.Start(cfg.dataPath(natsDir), log)
	}
	return openRemote(ctx, cfg, name, log)
}

// openRemote connects by a name to a broker that may be away for a while.
func openRemote(ctx context.Context, cfg Config, name string, log *slog.Logger) (*broker.Remote, error) {
	ctx, cancel := context.WithTimeout(ctx, engine.AwayLimit)
	defer cancel()
	remote, err := cfg.NATS.Open(ctx, name, log)
	if err != nil {
		return nil, cfg.unusable("nats.url", err)
	}
	return remote, nil
}

// plain rewrites an error that the user can correct: it names the setting, its value and
// the fault. It returns other errors as they are.
func plain(c Config, err error) error {
	return engine.Settings{Data: c.Data, MemoryFile: c.Memory == backendFile, NATS: c.NATS.Listen, HTTP: c.HTTP.Listen}.Explain(err)
}

// unusable says what is wrong with the engine that a setting names.
func (c Config) unusable(key string, err error) error {
	return engine.Unusable(c.origin(key), key, config.MaskURL(c.engine(key)), err)
}
