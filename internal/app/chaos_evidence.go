package app

import (
	"context"
	"errors"
	"log/slog"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/journal"
	"palimpsest/internal/chaos"
	"palimpsest/internal/store"
)

// engines are what processes keep their work in, open to be looked at.
type engines struct {
	cfg      Config
	streams  streams
	auditLog audit.Log
	memory   store.Store
	closers
}

// openEngines opens the configured engines, the memory store with open. An embedded
// broker accepts no clients.
func openEngines(ctx context.Context, cfg Config, open func(context.Context, Config, *slog.Logger) (store.Store, error)) (e *engines, err error) {
	e = &engines{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close(context.WithoutCancel(ctx)))
		}
	}()
	silent := slog.New(slog.DiscardHandler)
	if cfg.NATS.URL == natsEmbedded {
		e.streams, err = openOwn(cfg, silent)
	} else {
		e.streams, err = openStreams(ctx, cfg, "chaos", silent)
	}
	if err != nil {
		return e, err
	}
	e.later("broker", e.streams.Shutdown)
	if e.auditLog, _, err = openAudit(ctx, cfg, silent); err != nil {
		return e, err
	}
	e.later("audit log", func(context.Context) error { return e.auditLog.Close() })
	if e.memory, err = open(ctx, cfg, silent); err != nil {
		return e, err
	}
	e.later("memory store", func(context.Context) error { return e.memory.Close() })
	return e, nil
}

// JudgeEngines judges the data that a run left in the engines of cfg.
func JudgeEngines(ctx context.Context, cfg Config, record chaos.Record, workload *chaos.Workload) (verdict chaos.Verdict, err error) {
	left, err := openEngines(ctx, cfg, liveOf)
	if err != nil {
		return verdict, plain(cfg, err)
	}
	verdict, err = left.judge(ctx, record, workload)
	return verdict, plain(cfg, errors.Join(err, left.close(context.WithoutCancel(ctx))))
}

// judge holds the engines against the record.
func (e *engines) judge(ctx context.Context, record chaos.Record, workload *chaos.Workload) (chaos.Verdict, error) {
	deadLetters, err := chaos.DeadLetters(ctx, e.streams.JetStream())
	if err != nil {
		return chaos.Verdict{}, err
	}
	return chaos.Judge(ctx, record, workload, chaos.Evidence{
		Episodes: episodesOf(e.streams.JetStream()), Journal: journal.New(e.streams.JetStream()), Log: e.auditLog, Store: e.memory,
		Letters: deadLetters,
	})
}

// CompareEngines compares the facts of several processes with those of a single
// process that received the same messages, and adds the result to the verdict.
func CompareEngines(ctx context.Context, several, single Config, verdict *chaos.Verdict, workload *chaos.Workload) (err error) {
	many, err := liveOf(ctx, several, slog.New(slog.DiscardHandler))
	if err != nil {
		return plain(several, err)
	}
	defer func() { err = errors.Join(err, many.Close()) }()
	one, err := liveOf(ctx, single, slog.New(slog.DiscardHandler))
	if err != nil {
		return plain(single, err)
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	return verdict.CompareShapes(ctx, workload, many, one)
}
