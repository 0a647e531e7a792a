package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/erasure"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/pkg/client"
)

// newSuffix names the memory store's file while it is built.
const newSuffix = ".new"

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
		if cfg.erasures != nil && len(cfg.erasures.Pending()) > 0 {
			return out, erasure.ErrPending
		}
	}
	in := recovery.Inputs{Erased: cfg.erased(), Born: cfg.born(), Ingest: cfg.Ingest, Consolidator: cfg.Consolidator, Part: shown.Part, Logger: log}
	if in.Embedder, err = cfg.Embedder.open(); err != nil {
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
	js := from.JetStream()
	in.Episodes, in.Effects, in.Holds, in.Journal = episodesOf(js), effectsOf(js), holdsEpisode(js), journal.New(js)
	if in.Log, _, err = openAudit(ctx, cfg, log); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, in.Log.Close()) }()
	in.Generations = files{cfg, log}
	if cfg.Memory != backendFile {
		in.Generations = indexes{cfg, log, cfg.repair(from, in.Log, in.Embedder, log)}
	}
	if in.Said, err = extent(ctx, js, topology.StreamEpisodes); err != nil {
		return out, err
	}
	if in.Committed, err = extent(ctx, js, topology.StreamAudit); err != nil {
		return out, err
	}
	return recovery.New(in).Run(ctx, mode)
}

// openOwn opens streams in the data directory and listens on no address. Missing
// streams are made, empty, where there is a memory store.
func openOwn(cfg Config, log *slog.Logger) (streams, error) {
	dir := cfg.dataPath(natsDir)
	if _, err := os.Stat(dir); os.IsNotExist(err) && (cfg.Memory != backendFile || absent(cfg.dataPath(memoryFile))) {
		return nil, &userError{fmt.Sprintf("data: %s holds no streams to build from", cfg.Data), err}
	} else if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	own, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true, Sync: broker.Sync(cfg.NATS.Sync), Logger: log})
	if err != nil {
		return nil, err
	}
	return own, nil
}

// extent is what a stream holds.
func extent(ctx context.Context, js jetstream.JetStream, name string) (recovery.Extent, error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return recovery.Extent{}, fmt.Errorf("look up stream %s: %w", name, err)
	}
	state := stream.CachedInfo().State
	return recovery.Extent{First: state.FirstSeq, Last: state.LastSeq, Messages: state.Msgs}, nil
}

// holdsEpisode asks EPISODES for messages by their sequence.
func holdsEpisode(js jetstream.JetStream) func(ctx context.Context, sequence uint64) (bool, error) {
	return func(ctx context.Context, sequence uint64) (bool, error) {
		stream, err := js.Stream(ctx, topology.StreamEpisodes)
		if err != nil {
			return false, fmt.Errorf("look up stream %s: %w", topology.StreamEpisodes, err)
		}
		_, err = stream.GetMsg(ctx, sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		return err == nil, err
	}
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
