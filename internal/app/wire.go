package app

import (
	"context"

	"palimpsest/internal/decide"
	"palimpsest/internal/decide/deterministic"
	"palimpsest/internal/extract"
	"palimpsest/internal/extract/rulepack"
	"palimpsest/internal/httpserver"
	"palimpsest/internal/memory"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/telemetry"
	"palimpsest/services/consolidator"
	"palimpsest/services/decider"
	"palimpsest/services/extractor"
	"palimpsest/services/ingest"
	"palimpsest/services/query"
	"palimpsest/services/scheduler"
)

// wire hands each service its dependencies, in the order in which data meets
// the services.
func (h *house) wire(context.Context) error {
	metrics := telemetry.New()
	var err error
	h.runtime, err = pipeline.New(h.cfg.Pipeline, pipeline.Deps{
		JS: h.streams.JetStream(), Conn: h.streams.Conn(), Now: h.now, Logger: h.log, Observer: metrics.Observe,
	})
	if err != nil {
		return err
	}
	metrics.WatchStore(h.store)
	metrics.WatchStages(h.runtime.Stats)
	metrics.WatchLetters(h.runtime.Letters().Count)
	rules := memory.Shipped()
	packs, err := rulepack.New()
	if err != nil {
		return err
	}
	for _, build := range []func() (pipeline.Service, error){
		func() (pipeline.Service, error) {
			var err error
			h.ingest, err = ingest.New(h.cfg.Ingest, ingest.Deps{Episodes: h.store, Vectors: h.store, Embedder: h.embedder, Now: h.now})
			return h.ingest, err
		},
		func() (pipeline.Service, error) {
			return scheduler.New(h.cfg.Scheduler, scheduler.Deps{Schedule: h.store, Episodes: h.store, Now: h.now})
		},
		func() (pipeline.Service, error) {
			return extractor.New(h.cfg.Extractor, extractor.Deps{
				Episodes: h.store, Extractors: map[string]extract.Extractor{"rulepack": packs},
			})
		},
		func() (pipeline.Service, error) {
			return decider.New(h.cfg.Decider, decider.Deps{
				State: h.store, Facts: h.store, Search: h.store,
				Deciders: map[string]decide.Decider{"rules": deterministic.New()},
			})
		},
		func() (pipeline.Service, error) {
			var err error
			h.consolidator, err = consolidator.New(h.cfg.Consolidator, consolidator.Deps{
				Applier: h.store, Facts: h.store, Outcomes: h.store, Journal: h.journal, Log: h.auditLog, Kept: h.auditLog,
				Stored: h.store, Logger: h.log, Observe: metrics.Committed,
			})
			return h.consolidator, err
		},
	} {
		service, err := build()
		if err != nil {
			return err
		}
		h.services = append(h.services, service)
	}
	return h.wireQuery(metrics, rules)
}

// wireQuery takes the HTTP address: the last thing that can be taken already.
func (h *house) wireQuery(metrics *telemetry.Metrics, rules []memory.Rule) error {
	q, err := query.New(h.cfg.Query, query.Deps{
		Store: h.store, Searcher: h.store, Embedder: h.embedder, Journal: h.journal, Log: h.auditLog,
		Publisher: h.runtime.Publisher(), Listener: h.runtime.Listener(), Letters: h.runtime.Letters(),
		Rules: rules, Ready: h.ready, Metrics: metrics.Handler(), Version: version(), Now: h.now, Logger: h.log,
	})
	if err != nil {
		return err
	}
	h.services = append(h.services, q)
	h.http, err = httpserver.Listen(h.cfg.HTTP, q.Handler(), h.log)
	if err != nil {
		return err
	}
	h.later("HTTP address", func(context.Context) error { return ignoreClosed(h.http.Close()) })
	return nil
}
