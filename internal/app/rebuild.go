package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/engine"
	"palimpsest/internal/erasure"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
	"palimpsest/pkg/client"
)

// Rebuild rebuilds the memory store of a stopped Palimpsest, whose data directory is
// data, and shows its progress.
func (inv *Invocation) Rebuild(data string, mode recovery.Mode) (out recovery.Rebuilt, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	shown := terminal.NewProgress(inv.Terminal().Err)
	out, err = rebuild(inv.Context(), *cfg, cfg.Log.New(inv.Terminal().Err), shown, mode)
	shown.Wait()
	if cfg.Memory == backendFile && errors.Is(err, store.ErrLocked) || errors.Is(err, broker.ErrInUse) || errors.Is(err, audit.ErrLocked) {
		return out, fmt.Errorf("%w: a running Palimpsest must be stopped before its memory store is rebuilt", plain(*cfg, err))
	}
	return out, plain(*cfg, err)
}

// rebuild opens what [recovery.Rebuild.Run] reads, and has it build the memory store
// anew. Files of the data directory must not be in use. An embedded broker accepts no
// clients, so that the streams do not grow meanwhile. A shared broker does; the messages
// that it receives meanwhile are recovered after the switch. A broker's directory stays
// locked until the end, so that no other process begins to use the file in between.
func rebuild(ctx context.Context, cfg Config, log *slog.Logger, shown *terminal.Progress, mode recovery.Mode) (out recovery.Rebuilt, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("rebuild: %w", err)
		}
	}()
	if cfg.erasures == nil && !absentDir(cfg.Data) {
		if err := cfg.openErasures(); err != nil {
			return out, err
		}
		if len(cfg.erasures.Pending()) > 0 {
			return out, erasure.ErrPending
		}
	}
	embedder, err := cfg.Embedder.open()
	if err != nil {
		return out, err
	}
	var from streams
	if cfg.NATS.URL == natsEmbedded {
		from, err = openOwn(cfg, log)
	} else {
		from, err = openStreams(ctx, cfg, "rebuild", log)
	}
	if err != nil {
		return out, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		err = errors.Join(err, from.Shutdown(ctx))
	}()
	kept, _, err := openAudit(ctx, cfg, log)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	return recovery.New(recovery.Inputs{
		Repair: cfg.repair(from, kept, embedder, log), Born: cfg.erasures.Born, Part: shown.Part,
		Live: func(ctx context.Context) (store.Store, error) { return liveOf(ctx, cfg, log) },
		Begin: func(ctx context.Context, embedder embed.Info) (recovery.Draft, error) {
			return beginDraft(ctx, cfg, embedder, log)
		},
	}).Run(ctx, mode)
}

// beginDraft opens an empty memory store beside the one that the configuration names.
func beginDraft(ctx context.Context, cfg Config, embedder embed.Info, log *slog.Logger) (recovery.Draft, error) {
	if cfg.Memory != backendFile {
		to := cfg.redis()
		to.Building, to.Embedder, to.AccessedFrom, to.Logger, to.Born = true, embedder, putBack(time.Now), log, cfg.erasures.Born
		return openRedis(ctx, to)
	}
	path := cfg.dataPath(memoryFile) + sqlite.NewSuffix
	if err := sqlite.Discard(path); err != nil {
		return nil, err
	}
	made, err := sqlite.Open(ctx, sqlite.Config{
		Path: path, Building: true, Embedder: embedder, Born: cfg.erasures.Born, AccessedFrom: putBack(time.Now), Logger: log,
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// liveOf opens the memory store that is there, with any embedder.
func liveOf(ctx context.Context, cfg Config, log *slog.Logger) (store.Store, error) {
	if cfg.Memory != backendFile {
		to := cfg.redis()
		to.Logger, to.Born = log, cfg.erasures.Born
		return openRedis(ctx, to)
	}
	path := cfg.dataPath(memoryFile)
	if absent(path) {
		return nil, fmt.Errorf("data: %s: %w", path, recovery.ErrAbsent)
	}
	live, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return nil, err
	}
	return live, nil
}

func openRedis(ctx context.Context, cfg redis.Config) (recovery.Draft, error) {
	opened, err := redis.Open(ctx, cfg)
	switch {
	case errors.Is(err, store.ErrLocked):
		return nil, engine.Faultf(err, "another rebuild of the memory store is under way")
	case err != nil:
		return nil, err
	}
	return opened, nil
}

// openOwn opens streams in the data directory and listens on no address. Missing
// streams are made, empty, where there is a memory store.
func openOwn(cfg Config, log *slog.Logger) (streams, error) {
	dir := cfg.dataPath(natsDir)
	if _, err := os.Stat(dir); os.IsNotExist(err) && (cfg.Memory != backendFile || absent(cfg.dataPath(memoryFile))) {
		return nil, engine.Faultf(err, "data: %s holds no streams to build from", cfg.Data)
	} else if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	own, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true, Sync: broker.Sync(cfg.NATS.Sync), Logger: log})
	if err != nil {
		return nil, err
	}
	return own, nil
}

// Reindex gives the memory store the vectors of the configured embedder, and returns
// once they are served. Where a running Palimpsest holds the store, it does that work
// itself, and Reindex shows how far it is.
func (inv *Invocation) Reindex(data string) (out recovery.Reindexed, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	shown := terminal.NewProgress(inv.Terminal().Err)
	live, err := liveOf(inv.Context(), *cfg, cfg.Log.New(inv.Terminal().Err))
	if cfg.Memory == backendFile && errors.Is(err, store.ErrLocked) {
		var c *client.Client
		if c, err = inv.Client(); err == nil {
			out, err = recovery.FollowReindex(inv.Context(), c, shown.Part)
		}
	} else if err == nil {
		var configured embed.Embedder
		if configured, err = cfg.Embedder.open(); err == nil {
			set := embedders(configured, func(e embed.Embedder) embed.Embedder { return e })
			out, err = recovery.Reindex(inv.Context(), cfg.Ingest, configured.Info(), set, live, shown.Part)
		}
		err = errors.Join(err, live.Close())
	}
	if err == nil { // a bar that has not ended would be waited for
		shown.Wait()
	}
	return out, plain(*cfg, err)
}
