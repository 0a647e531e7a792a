package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"palimpsest/internal/audit"
	"palimpsest/internal/auth"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/engine"
	"palimpsest/internal/erasure"
	"palimpsest/internal/extract/rulepack"
	"palimpsest/internal/heap"
	"palimpsest/internal/httpserver"
	"palimpsest/internal/llm"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/readiness"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/telemetry"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
	"palimpsest/services/query"
	"palimpsest/services/scheduler"
)

// closeLimit bounds the closing of the backends after the services have drained.
const closeLimit = 15 * time.Second

// process is a process with the backends and services of its target.
type process struct {
	target target
	cfg    Config
	log    *slog.Logger
	now    func() time.Time
	engine.Closers

	streams  broker.Broker
	store    store.Store
	auditLog audit.Log // nil where no part works on it
	// storeGone and auditGone are closed when a file of theirs vanishes.
	storeGone, auditGone <-chan struct{}
	embedder             embed.Embedder
	packs                func() (*rulepack.Extractor, error) // compiled once: they are large
	models               *llm.Models
	metrics              *telemetry.Metrics
	tracer               trace.Tracer // nil where nothing is traced
	timed                timed
	gate                 *auth.Gate // nil where no part answers callers
	runtime              *pipeline.Runtime
	services             []pipeline.Service
	handler              http.Handler
	http                 *httpserver.Server

	readiness    *readiness.Process
	ingest       *ingest.Service       // nil where it is no part
	scheduler    *scheduler.Service    // nil where it is no part
	consolidator *consolidator.Service // nil where it is no part
	query        *query.Service        // nil where it is no part
	short        error                 // a stream lacks what the stores have; nil where none does
	caughtUp     recovery.CaughtUp
	erasures     *erasure.Desk // nil where users cannot be erased
	healing      *recovery.Healing
}

// assemble is an open process with the clock of the product and the embedder that
// the configuration names.
func assemble(ctx context.Context, sh target, cfg Config, log *slog.Logger) (*process, error) {
	heap.Start()
	h := &process{target: sh, cfg: cfg, log: log, now: time.Now}
	var err error
	if h.embedder, err = openEmbedder(cfg.Embedder); err != nil {
		return h, err
	}
	return h, h.open(ctx)
}

// open opens the backends, then wires the services to them. If a step fails, it
// closes the opened ones in reverse order.
func (h *process) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{h.prepareErasures, h.refuseImport, h.restore, h.eraseAsked, h.openStores, h.connect, h.compareStreams, h.wire} {
		if err := step(ctx); err != nil {
			return errors.Join(plain(h.cfg, err), h.shut())
		}
	}
	return nil
}

func (h *process) openStores(ctx context.Context) error {
	var err error
	if h.store, h.storeGone, err = openMemory(ctx, h.cfg, h.embedder.Info(), h.now, h.log); err != nil {
		return err
	}
	h.Later("memory store", func(context.Context) error { return h.store.Close() })
	if h.target.embeds() {
		if err := h.store.BuildSpace(ctx, h.embedder.Info()); err != nil {
			return err
		}
	}
	if !h.target.auditLog() {
		return nil
	}
	if h.auditLog, h.auditGone, err = openAudit(ctx, h.cfg, h.log); err != nil {
		return err
	}
	h.Later("audit log", func(context.Context) error { return h.auditLog.Close() })
	return nil
}

func (h *process) connect(ctx context.Context) error {
	var err error
	if h.streams, err = openBroker(ctx, h.cfg, h.target.name, h.log); err != nil {
		return err
	}
	h.Later("broker", h.streams.Shutdown)
	return nil
}

// run serves until ctx ends or a part fails, then drains: HTTP first, so that
// nothing new comes in, then the services, then what they rest on.
func (h *process) run(ctx context.Context, ready func()) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-h.storeGone:
			stop(h.store.Ping(context.WithoutCancel(ctx)))
		case <-h.auditGone:
			stop(h.auditLog.Ping(context.WithoutCancel(ctx)))
		case <-h.erasures.Wanted():
			stop(errErase)
		case <-ctx.Done():
		}
	}()
	heap.Limit(h.cfg.MemoryLimit)
	if h.gate != nil {
		httpserver.SpareThreads()
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { heap.Trim(running); return nil })
	group.Go(func() error { return h.serveOnceThere(running, ready) })
	group.Go(func() error { return h.http.Serve(running) })
	if h.gate != nil {
		group.Go(func() error { return h.gate.Ring.Run(running) })
	}
	err := group.Wait()
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return errors.Join(err, h.shut())
}

// serveOnceThere is serve for engines that were there when they were opened and
// go away before the services run: it begins again.
func (h *process) serveOnceThere(ctx context.Context, ready func()) error {
	running := false
	err := engine.Await(ctx, func(err error) bool { return !running && engine.Away(err) }, func(err error) {
		h.log.Warn("waiting for an engine that went away during the start", "error", err)
	}, func() error {
		return h.serve(ctx, func() { running = true; ready() })
	})
	if err != nil && !running && engine.Away(err) {
		return fmt.Errorf("wait for an engine that went away during the start: %w", err)
	}
	return err
}

// shut closes what was opened, within a limit.
func (h *process) shut() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return h.Close(ctx)
}

// service is a service as a process runs it. Each needs the streams and the memory
// store; what else it needs is opened where it is wanted.
type service struct {
	name string
	// auditLog: it works on the audit log.
	auditLog bool
	// answers: it serves an API to callers, besides its own status.
	answers bool
	// embeds: it gives texts their vectors, so that its embedder is the one that the
	// memory store is to have.
	embeds bool
	wire   func(h *process) (pipeline.Service, error)
}

// services are all services, in the order in which data meets them.
var services = []service{
	{name: "ingest", embeds: true, wire: (*process).wireIngest},
	{name: "scheduler", wire: (*process).wireScheduler},
	{name: "extractor", wire: (*process).wireExtractor},
	{name: "decider", wire: (*process).wireDecider},
	{name: "consolidator", auditLog: true, wire: (*process).wireConsolidator},
	{name: "query", auditLog: true, answers: true, wire: (*process).wireQuery},
}

// target lists the services of one process. It decides which of them are wired and
// which backends are opened for them; the services do not depend on it.
type target struct {
	name     string
	services []service
	entire   bool // it has every service
}

// whole is everything in one process.
func whole() target { return target{"up", services, true} }

// alone is one service, by its name.
func alone(name string) target {
	return target{name, slices.DeleteFunc(slices.Clone(services), func(p service) bool { return p.name != name }), false}
}

func (s target) auditLog() bool {
	return slices.ContainsFunc(s.services, func(p service) bool { return p.auditLog })
}

func (s target) answers() bool {
	return slices.ContainsFunc(s.services, func(p service) bool { return p.answers })
}

func (s target) embeds() bool {
	return slices.ContainsFunc(s.services, func(p service) bool { return p.embeds })
}

// validate names the settings that the process cannot work with: a backend that
// belongs to one process where several share it.
func (s target) validate(c Config) error {
	var errs []error
	own := func(key, value, instead string) {
		errs = append(errs, fmt.Errorf("%s: %q belongs to one process, and \"palimpsest %s\" is one of several: name %s, or use \"palimpsest up\"",
			key, value, s.name, instead))
	}
	if len(s.services) < len(services) {
		if c.NATS.Own() {
			own("nats.url", broker.OwnServer, "nats://…")
		}
		if c.Memory == backendFile {
			own("memory", backendFile, "redis://…")
		}
		if c.Audit == backendFile && s.auditLog() {
			own("audit", backendFile, "clickhouse://…")
		}
	}
	return errors.Join(errs...)
}

// warn says at the start what is allowed and yet not wise.
func (s target) warn(c Config, log *slog.Logger) {
	if s.answers() && c.HTTP.Mode() == auth.Off && c.HTTP.Reachable() {
		log.Warn("the HTTP API requires no keys: every caller can read and write everything", "listen", c.HTTP.Listen)
	}
}
