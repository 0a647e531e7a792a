package app

import (
	"context"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/embed"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/readiness"
	"palimpsest/internal/store"
	"palimpsest/internal/telemetry"
	"palimpsest/internal/version"
)

// newReadiness returns what asks the dependencies of this process how they are.
func (h *process) newReadiness() *readiness.Process {
	return &readiness.Process{
		Broker: h.streams, Runtime: h.runtime, Tracker: pipeline.NewTracker(time.Now, h.log), Store: h.store, Log: h.auditLog,
		Models: h.models.Governors,
		More:   map[string]readiness.Check{"recovered": h.caughtUp.Ready, "intact": h.intact},
		Plain:  func(err error) error { return plain(h.cfg, err) }, Logger: h.log,
	}
}

// export begins to send what is traced and counted to a collector, if one is
// named; a stop sends the rest.
func (h *process) export(ctx context.Context) error {
	id := telemetry.Identity{Service: "palimpsest", Version: version.String()}
	if len(h.target.services) == 1 {
		id.Service += "-" + h.target.name
	}
	export, err := telemetry.NewExport(ctx, h.cfg.Telemetry, id, h.metrics, h.log)
	if export == nil || err != nil {
		return err
	}
	h.tracer = export.Tracer()
	h.Later("telemetry", export.Shutdown)
	return nil
}

// timed are the backends as services get them: every call counts.
type timed struct {
	store     store.Store
	log       audit.Log // nil where no part works on it
	embedders embed.Set
}

func (h *process) timeBackends() timed {
	t := timed{store: h.metrics.Store(h.store), embedders: embedders(h.embedder, h.metrics.Embedder)}
	if h.auditLog != nil {
		t.log = h.metrics.Log(h.auditLog)
	}
	return t
}

// watch adds the figures of this process that are asked for at a scrape.
func (h *process) watch() {
	h.metrics.WatchBuild(version.String())
	h.metrics.WatchStages(h.runtime.Stats)
	h.metrics.WatchBacklog(h.runtime.Progress)
	h.metrics.WatchReady(h.readiness.Ready)
	h.metrics.WatchStalls(h.readiness.Tracker.Stalls)
	if own, ok := h.streams.(interface{ Space() (free, reserve int64) }); ok {
		h.metrics.WatchDisk(own.Space) // the disk of another broker is not ours to watch
	}
}

// watchShared adds the figures of what all processes share.
func (h *process) watchShared(rules []memory.Rule) {
	h.metrics.WatchStore(h.store)
	h.metrics.WatchLedger(h.store, memory.Readers(rules))
	h.metrics.WatchStreams(h.runtime.Streams)
	h.metrics.WatchLetters(h.runtime.Letters().Count)
}
