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
	"palimpsest/internal/chaos"
	"palimpsest/internal/store"
	"palimpsest/internal/topology"
)

// engines are what processes keep their work in, open to be looked at.
type engines struct {
	cfg      Config
	streams  streams
	auditLog audit.Log
	memory   store.Store
	closers  []closer
}

// openEngines opens the configured engines, the memory store with open. An embedded
// broker accepts no clients.
func openEngines(ctx context.Context, cfg Config, open func(context.Context, Config, *slog.Logger) (store.Store, error)) (e *engines, err error) {
	e = &engines{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close(ctx))
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

func (e *engines) later(name string, undo func(context.Context) error) {
	e.closers = append(e.closers, closer{name, undo})
}

func (e *engines) close(ctx context.Context) error {
	var errs []error
	for n := len(e.closers) - 1; n >= 0; n-- {
		errs = append(errs, e.closers[n].close(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}

// verdict judges the data that the run left in the engines.
func (t *trial) verdict() (out tried, err error) {
	ctx := t.inv.ctx
	record, workload, err := chaos.ReadRecord(t.dir)
	if err != nil {
		return out, err
	}
	out.Size, out.Run = record.Size, record.Run
	if out.Verdict, err = t.examine(ctx, record, workload); err != nil {
		return out, plain(t.cfg, err)
	}
	return out, ctx.Err()
}

func (t *trial) examine(ctx context.Context, record chaos.Record, workload *chaos.Workload) (verdict chaos.Verdict, err error) {
	left, err := openEngines(ctx, t.cfg, liveOf)
	if err != nil {
		return verdict, err
	}
	verdict, err = left.judge(ctx, record, workload)
	if err = errors.Join(err, left.close(ctx)); err != nil {
		return verdict, err
	}
	digests, failed := chaos.Rebuild(ctx, t.program, t.dir, t.plan)
	verdict.Compare(digests, failed)
	if _, err := os.Stat(t.calm()); err != nil {
		return verdict, nil //nolint:nilerr // no comparison was requested
	}
	return verdict, t.compare(ctx, &verdict, workload)
}

// judge holds the engines against the record.
func (e *engines) judge(ctx context.Context, record chaos.Record, workload *chaos.Workload) (chaos.Verdict, error) {
	letters, err := lettersEver(ctx, e.streams.JetStream())
	if err != nil {
		return chaos.Verdict{}, err
	}
	return chaos.Judge(ctx, record, workload, chaos.Evidence{
		Episodes: episodesOf(e.streams.JetStream()), Journal: journal.New(e.streams.JetStream()), Log: e.auditLog, Store: e.memory,
		Letters: letters,
	})
}

// lettersEver counts the dead letters that were written since the stream was
// made, which a run finds or makes empty: a start drops what it mends.
func lettersEver(ctx context.Context, js jetstream.JetStream) (uint64, error) {
	stream, err := js.Stream(ctx, topology.StreamDeadLetter)
	if err != nil {
		return 0, fmt.Errorf("count dead letters: %w", err)
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// compare compares the facts of several processes with those of a single process
// that received the same messages.
func (t *trial) compare(ctx context.Context, verdict *chaos.Verdict, workload *chaos.Workload) (err error) {
	several, err := liveOf(ctx, t.cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, several.Close()) }()
	one, err := liveOf(ctx, ownEngines(t.calm()), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	return verdict.CompareShapes(ctx, workload, several, one)
}
