package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/auth"
	"palimpsest/internal/broker"
	"palimpsest/internal/doctor"
	"palimpsest/internal/embed"
	"palimpsest/internal/engine"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/recovery"
	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
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
	return out, plain(*cfg, err)
}

// rebuild opens what [recovery.Rebuild.Run] reads, and has it build the memory store
// anew. Files of the data directory must not be in use. An embedded broker accepts no
// clients, so that the streams do not grow meanwhile. A shared broker does; the messages
// that it receives meanwhile are recovered after the switch. A broker's directory stays
// locked until the end, so that no other process begins to use the file in between.
func rebuild(ctx context.Context, cfg Config, log *slog.Logger, shown *terminal.Progress, mode recovery.Mode) (out recovery.Rebuilt, err error) {
	var opened engine.Closers
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		if err = errors.Join(err, opened.Close(ctx)); err != nil {
			err = fmt.Errorf("rebuild: %w", err)
		}
	}()
	if cfg.erasures == nil && !absentDir(cfg.Data) {
		if err := cfg.openSettled(); err != nil {
			return out, err
		}
	}
	embedder, err := openEmbedder(cfg.Embedder)
	if err != nil {
		return out, err
	}
	var from broker.Broker
	if cfg.NATS.Own() {
		from, err = openOwn(cfg, log)
	} else {
		from, err = openBroker(ctx, cfg, "rebuild", log)
	}
	if err != nil {
		return out, err
	}
	opened.Later("broker", from.Shutdown)
	kept, _, err := openAudit(ctx, cfg, log)
	if err != nil {
		return out, err
	}
	opened.Later("audit log", func(context.Context) error { return kept.Close() })
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
		to.Building, to.Embedder, to.AccessedFrom, to.Logger, to.Born = true, embedder, store.PutBack(time.Now), log, cfg.erasures.Born
		return redis.Open(ctx, to)
	}
	path := cfg.dataPath(memoryFile) + sqlite.NewSuffix
	if err := sqlite.Discard(path); err != nil {
		return nil, err
	}
	return sqlite.Open(ctx, sqlite.Config{
		Path: path, Building: true, Embedder: embedder, Born: cfg.erasures.Born, AccessedFrom: store.PutBack(time.Now), Logger: log,
	})
}

// liveOf opens the memory store that is there, with any embedder.
func liveOf(ctx context.Context, cfg Config, log *slog.Logger) (store.Store, error) {
	if cfg.Memory != backendFile {
		to := cfg.redis()
		to.Logger, to.Born = log, cfg.erasures.Born
		return redis.Open(ctx, to)
	}
	path := cfg.dataPath(memoryFile)
	if sqlitefile.Absent(path) {
		return nil, fmt.Errorf("data: %s: %w", path, recovery.ErrAbsent)
	}
	return sqlite.Open(ctx, sqlite.Config{Path: path})
}

// openOwn opens streams in the data directory and listens on no address. Missing
// streams are made, empty, where there is a memory store.
func openOwn(cfg Config, log *slog.Logger) (broker.Broker, error) {
	dir := cfg.dataPath(natsDir)
	if _, err := os.Stat(dir); os.IsNotExist(err) && (cfg.Memory != backendFile || sqlitefile.Absent(cfg.dataPath(memoryFile))) {
		return nil, engine.Faultf(err, "data: %s holds no streams to build from", cfg.Data)
	} else if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return cfg.NATS.StartPrivate(dir, log)
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
		if configured, err = openEmbedder(cfg.Embedder); err == nil {
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

// serve runs the services, and calls ready once the memory store has all that the
// streams held at the start. A store that lacks anything, because its process died
// or because it was restored from an older copy, is brought up to the streams by the
// readers that fill it at all times: each goes on from its cursor in the store.
//
// Others may run, and do the same, at the same time, without a leader:
//
// Ordinals. Every reader that reads a partition of EPISODES in order, from a place
// below which all is stored, gives each episode the same ordinal.
//
// Revisions. AUDIT hands them out, not the store: an append names the newest effect
// that its scope's row knows, and is refused where there is a newer one. So a
// consolidator on a store that is behind can commit nothing wrong, and an effect
// that two of them apply is applied once.
func (h *process) serve(ctx context.Context, ready func()) error {
	if err := h.healing.Begin(ctx); err != nil {
		return err
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { h.readiness.Track(ctx) })
	beside.Go(func() {
		h.healing.Run(ctx, func() {
			ready()
			if h.query != nil {
				beside.Go(func() { h.query.Resume(ctx) })
			}
		})
	})
	return h.runtime.Run(ctx, h.services...)
}

// newHealing returns what keeps the memory store of this process complete.
func (h *process) newHealing() *recovery.Healing {
	return &recovery.Healing{
		Repair: h.cfg.repair(h.streams, h.auditLog, h.embedder, h.log), Store: h.store, Answers: h.target.answers(), CaughtUp: &h.caughtUp,
	}
}

// repair recovers lost rows with a broker and an audit log, which may be nil.
func (c Config) repair(from broker.Broker, kept audit.Log, embedder embed.Embedder, log *slog.Logger) recovery.Repair {
	out := recovery.Repair{
		Episodes: episodesOf(from.JetStream()), Effects: effectsOf(from.JetStream()), Journal: journal.New(from.JetStream()), Log: kept,
		IngestConfig: c.Ingest, ConsolidatorConfig: c.Consolidator, Embedder: embedder, Erased: c.erasures.Erased, Logger: log,
	}
	if c.Audit != backendFile {
		out.OpenLog = func(ctx context.Context) (audit.Log, error) {
			opened, _, err := openAudit(ctx, c, log)
			return opened, err
		}
	}
	return out
}

// episodesOf and effectsOf are the streams from end to end.
func episodesOf(js jetstream.JetStream) *pipeline.Replay {
	return pipeline.NewReplay(js, topology.StreamEpisodes, "ingest")
}

func effectsOf(js jetstream.JetStream) *pipeline.Replay {
	return pipeline.NewReplay(js, topology.StreamAudit, "consolidator")
}

// restore rebuilds a memory store whose file is missing, or whose log was cut, where
// there are streams, as [recovery.Restore] does.
func (h *process) restore(ctx context.Context) error {
	if !h.cfg.local() {
		return nil
	}
	if err := doctor.Writable(h.cfg.Data); err != nil || h.cfg.Memory != backendFile {
		return err
	}
	path, why := h.cfg.dataPath(memoryFile), ""
	switch {
	case sqlitefile.Absent(path):
		why = "it is missing"
	case sqlitefile.Torn(path):
		why = "its log was cut"
	}
	if _, err := os.Stat(h.cfg.dataPath(natsDir)); err != nil || why == "" {
		return nil //nolint:nilerr // nothing is missing, or there is nothing to rebuild it from
	}
	return recovery.Restore(why, h.log, func() (recovery.Rebuilt, error) {
		return rebuild(ctx, h.cfg, h.log, terminal.NewProgress(io.Discard), recovery.Mode{})
	})
}

// compareStreams looks whether EPISODES or AUDIT lacks the end that the stores
// have. Then the process runs, and is not ready.
func (h *process) compareStreams(ctx context.Context) error {
	js := h.streams.JetStream()
	short, err := recovery.Short(ctx, h.store, h.auditLog, episodesOf(js), effectsOf(js), h.log)
	if short != nil {
		what := strings.ReplaceAll(short.Error(), "\n", "; ")
		h.short = engine.Faultf(short, "%s; stop Palimpsest and run \"palimpsest rebuild --data %s\", which keeps what the stores have", what, h.cfg.Data)
		h.log.Error("a stream was lost or cut short", "error", h.short)
	}
	return err
}

// intact is an error while a stream lacks what the stores have, or the bucket of
// API keys is lost.
func (h *process) intact(context.Context) (map[string]any, error) {
	return nil, errors.Join(h.short, h.keysLost())
}

// keysLost is an error while keys are needed and the bucket that had them is empty.
func (h *process) keysLost() error {
	if h.gate == nil || h.gate.Mode == auth.Off {
		return nil
	}
	return h.gate.Ring.Whole()
}
