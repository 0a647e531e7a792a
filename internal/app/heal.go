package app

import (
	"context"
	"errors"
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
	"palimpsest/internal/doctor"
	"palimpsest/internal/embed"
	"palimpsest/internal/engine"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/services/consolidator"
)

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
		if h.healing.Await(ctx) {
			ready()
		}
		h.healing.Keep(ctx)
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
func (c Config) repair(from streams, kept audit.Log, embedder embed.Embedder, log *slog.Logger) recovery.Repair {
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

// restore builds a memory store anew whose file is missing, or whose log was cut,
// where there are streams to build it from. Where they do not have all that it takes,
// or lost some, the store that there is begins, and readiness says what is missing.
func (h *process) restore(ctx context.Context) error {
	if !h.cfg.local() {
		return nil
	}
	if err := doctor.Writable(h.cfg.Data); err != nil || h.cfg.Memory != backendFile {
		return err
	}
	path, why := h.cfg.dataPath(memoryFile), ""
	switch {
	case absent(path):
		why = "it is missing"
	case sqlite.Torn(path):
		why = "its log was cut"
	}
	if _, err := os.Stat(h.cfg.dataPath(natsDir)); err != nil || why == "" {
		return nil //nolint:nilerr // there is nothing to build, or nothing to build it from
	}
	began := time.Now()
	h.log.Warn("the memory store is built anew from the streams", "because", why)
	out, err := rebuild(ctx, h.cfg, h.log, terminal.NewProgress(io.Discard), recovery.Mode{})
	gap := (*consolidator.GapError)(nil)
	switch {
	case errors.As(err, &gap), errors.Is(err, consolidator.ErrAhead), errors.As(err, new(*recovery.LossError)):
		h.log.Error("the memory store cannot be built anew", "error", err)
	case err != nil:
		return err
	default:
		h.log.Warn("the memory store was built anew", "episodes", out.Episodes, "effects", out.Effects, "scopes", out.Scopes,
			"took", time.Since(began))
	}
	return nil
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
