package app

import (
	"context"
	"sync"

	"palimpsest/internal/audit/journal"
	"palimpsest/internal/auth"
	"palimpsest/internal/auth/bucket"
	"palimpsest/internal/cursor"
	"palimpsest/internal/decide"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/internal/erasure"
	"palimpsest/internal/extract"
	"palimpsest/internal/extract/rulepack"
	"palimpsest/internal/httpserver"
	"palimpsest/internal/llm"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/rules"
	"palimpsest/internal/telemetry"
	"palimpsest/internal/version"
	"palimpsest/pkg/events"
	"palimpsest/services/consolidator"
	"palimpsest/services/decider"
	"palimpsest/services/extractor"
	"palimpsest/services/ingest"
	"palimpsest/services/query"
	"palimpsest/services/scheduler"
)

// wire hands each service of the target its dependencies, in the order in which
// data meets them, and takes the HTTP address: the last thing that can be taken
// already.
func (h *process) wire(ctx context.Context) error {
	h.metrics = telemetry.New()
	err := h.export(ctx)
	if err != nil {
		return err
	}
	h.runtime, err = pipeline.New(h.cfg.Pipeline, pipeline.Deps{
		JS: h.streams.JetStream(), Callers: h.streams.Callers(), Conn: h.streams.Conn(), Now: h.now, Logger: h.log, Tracer: h.tracer, Observer: h.metrics.Observe,
		Inbox: &pipeline.Inbox{Stream: ingest.Stream, Partitions: ingest.Partitions(), Cursors: h.store},
	})
	if err != nil {
		return err
	}
	h.packs = sync.OnceValues(func() (*rulepack.Extractor, error) { return rulepack.New() })
	h.models = llm.NewModels(h.cfg.LLM, h.store, openModel, h.now)
	h.healing = h.newHealing()
	h.readiness = h.newReadiness()
	h.watch()
	h.timed = h.timeBackends()
	if h.target.answers() {
		if err := h.openGate(ctx); err != nil {
			return err
		}
	}
	h.handler = h.cfg.HTTP.Status(version.String(), h.readiness.Ready, h.metrics.Handler())
	for _, p := range h.target.services {
		service, err := p.wire(h)
		if err != nil {
			return err
		}
		h.services = append(h.services, service)
	}
	if h.http, err = httpserver.Listen(h.cfg.HTTP, h.handler, h.log); err != nil {
		return err
	}
	h.Later("HTTP address", func(context.Context) error { return h.http.Close() })
	return nil
}

// openGate reads the API keys. Both stores keep that a key was made, as a rebuild
// replaces the memory store.
func (h *process) openGate(ctx context.Context) error {
	marks := []cursor.Store{h.store}
	if h.auditLog != nil {
		marks = append(marks, h.auditLog)
	}
	ring, err := auth.OpenRing(ctx, bucket.New(h.streams.JetStream()), marks, h.cfg.HTTP.Limits, h.now, h.log)
	if err != nil {
		return err
	}
	h.gate = &auth.Gate{Ring: ring, Mode: h.cfg.HTTP.Mode(), Reachable: h.cfg.HTTP.Reachable(), Log: h.log}
	if lost := h.keysLost(); lost != nil {
		h.log.Error("API keys were lost", "error", lost)
	}
	return nil
}

func (h *process) wireIngest() (_ pipeline.Service, err error) {
	h.ingest, err = ingest.New(h.cfg.Ingest, ingest.Deps{
		Episodes: h.timed.store, Cursors: h.store, Shares: h.store, Vectors: h.timed.store, Embedders: h.timed.embedders, Now: h.now,
		Erased: h.cfg.erasures.Erased, Adopt: h.healing.AdoptEpisodes, Logger: h.log,
	})
	h.healing.Ingest = h.ingest
	return h.ingest, err
}

func (h *process) wireScheduler() (_ pipeline.Service, err error) {
	h.scheduler, err = scheduler.New(h.cfg.Scheduler, scheduler.Deps{Schedule: h.timed.store, Episodes: h.timed.store, Now: h.now})
	if err == nil {
		h.readiness.Late = h.scheduler.Late
	}
	return h.scheduler, err
}

// RulePacks returns the extractor that needs no model.
func RulePacks() (extract.Extractor, error) { return rulepack.New() }

func (h *process) wireExtractor() (pipeline.Service, error) { return h.newExtractor() }

func (h *process) newExtractor() (*extractor.Service, error) {
	packs, err := h.packs()
	if err != nil {
		return nil, err
	}
	all := map[string]extract.Extractor{"rulepack": packs}
	if err := h.modelExtractor(all, packs); err != nil {
		return nil, err
	}
	return extractor.New(h.cfg.Extractor, extractor.Deps{Episodes: h.timed.store, Facts: h.timed.store, Extractors: all, Fallback: packs})
}

func (h *process) wireDecider() (pipeline.Service, error) { return h.newDecider() }

func (h *process) newDecider() (*decider.Service, error) {
	all := map[string]decide.Decider{"rules": deterministic.New()}
	model, err := h.modelDecider()
	if err != nil {
		return nil, err
	}
	if model != nil {
		all[rules.Model] = model
	}
	return decider.New(h.cfg.Decider, decider.Deps{State: h.timed.store, Whole: h.timed.store, Facts: h.timed.store, Search: h.timed.store, Deciders: all})
}

func (h *process) wireConsolidator() (_ pipeline.Service, err error) {
	h.consolidator, err = consolidator.New(h.cfg.Consolidator, consolidator.Deps{
		Applier: h.timed.store, Facts: h.timed.store, Outcomes: h.timed.store, Journal: h.metrics.Journal(journal.New(h.streams.JetStream())),
		Log: h.timed.log, Kept: h.auditLog, Cursors: h.store, LogCursors: h.auditLog, Shares: h.store, Behind: h.healing.Storing, Adopt: h.healing.AdoptEffects,
		Born: h.cfg.erasures.Born, Logger: h.log, Observe: h.metrics.Committed,
	})
	h.healing.Consolidator = h.consolidator
	return h.consolidator, err
}

// rehearsal extracts and decides in this process, also where the extractor and the
// decider run in others. It reads the rule packs when they are first needed: a query
// process that rehearses nothing spends most of its start on them.
func (h *process) rehearsal() (query.Rehearse, error) {
	newExtractor := sync.OnceValues(h.newExtractor)
	if h.cfg.LLM.On() { // the start reports errors of its settings
		if _, err := newExtractor(); err != nil {
			return nil, err
		}
	}
	decides, err := h.newDecider()
	return func(ctx context.Context, tick events.TickIssued) (events.CandidatesExtracted, events.DeltasDecided, error) {
		extracts, err := newExtractor()
		if err != nil {
			return events.CandidatesExtracted{}, events.DeltasDecided{}, err
		}
		found, err := extracts.Rehearse(ctx, tick)
		if err != nil {
			return found, events.DeltasDecided{}, err
		}
		decided, err := decides.Rehearse(ctx, found, h.now())
		return found, decided, err
	}, err
}

// wireQuery wires the query service and the metrics of everything that all
// processes share. One service is enough to report those.
func (h *process) wireQuery() (pipeline.Service, error) {
	h.watchShared(h.cfg.Scheduler.Rules)
	rehearse, err := h.rehearsal()
	if err != nil {
		return nil, err
	}
	var erases query.Erasures
	if h.erases() && h.cfg.erasures != nil {
		h.erasures = erasure.NewDesk(h.cfg.erasures, h.cfg.room, h.now)
		erases = h.erasures
	}
	var understands func(texts []string) bool
	if !h.cfg.LLM.On() { // a model reads every language
		understands = func(texts []string) bool {
			packs, err := h.packs()
			return err != nil || packs.Reads(texts)
		}
	}
	ticks := h.cfg.Scheduler.WithDefaults()
	// Other processes could answer where any of the engines is shared.
	h.cfg.Query.Incognito = h.cfg.NATS.Own() &&
		h.cfg.Memory == backendFile && h.cfg.Audit == backendFile
	q, err := query.New(h.cfg.Query, query.Deps{
		Erasures: erases, Understands: understands,
		Store: h.timed.store, Searcher: h.timed.store, Embedders: h.timed.embedders, Journal: journal.New(h.streams.JetStream()), Log: h.timed.log,
		Publisher: h.runtime.Publisher(), Listener: h.runtime.Listener(), Letters: h.runtime.Letters(),
		Rules: h.cfg.Scheduler.Rules, Bounds: memory.Bounds{Episodes: ticks.TickEpisodes, Tokens: ticks.TickTokens},
		Rehearse: rehearse, Gate: h.gate, Ready: h.readiness.Ready, Metrics: h.metrics.Handler(), Version: version.String(), Now: h.now, Logger: h.log,
	})
	if err != nil {
		return nil, err
	}
	h.handler, h.query = h.metrics.HTTP(q.Handler(), h.tracer), q
	return q, nil
}
