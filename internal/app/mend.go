package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/store"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

// mendAgain is the pause after an attempt to mend the memory store that failed.
const mendAgain = time.Second

// cure is what it takes to put back into a memory store what it lost.
type cure struct {
	cfg      Config
	js       jetstream.JetStream
	auditLog audit.Log
	embedder embed.Embedder
	log      *slog.Logger
}

// episodes stores again what was said.
func (c cure) episodes(ctx context.Context, through store.Store) error {
	began := time.Now()
	said, err := ingest.New(c.cfg.Ingest, ingest.Deps{Episodes: through, Vectors: through, Embedder: c.embedder})
	if err != nil {
		return err
	}
	count := func(ctx context.Context) error { return c.count(ctx, said, through) }
	var stored int
	if m, ok := through.(store.Mender); ok && m.Scattered() {
		stored, err = said.PutBack(ctx, pastOf(c.js), count)
	} else {
		stored, err = said.Recover(ctx, pastOf(c.js), through, count)
	}
	if err != nil {
		return fmt.Errorf("recover episodes: %w", err)
	}
	c.log.Info("what was said is whole in the memory store", "stored_again", stored, "took", time.Since(began))
	return nil
}

// effects applies again what came of it. What neither AUDIT nor the audit log can
// heal is no reason to stop the rest: each consolidator tells of it in /readyz.
func (c cure) effects(ctx context.Context, through store.Store) error {
	began := time.Now()
	journal := broker.NewJournal(c.js)
	commits, err := consolidator.New(c.cfg.Consolidator, consolidator.Deps{
		Applier: through, Facts: through, Outcomes: through, Journal: journal, Log: c.auditLog, Kept: c.auditLog, Stored: through, Logger: c.log,
	})
	if err != nil {
		return err
	}
	found, err := commits.Heal(ctx, journal)
	if err != nil && !errors.Is(err, consolidator.ErrAhead) && !errors.As(err, new(*consolidator.GapError)) {
		return fmt.Errorf("heal: %w", err)
	}
	c.log.Info("what came of it is whole in the memory store", "scopes", found.Scopes, "healed", found.Behind, "took", time.Since(began))
	return nil
}

func (h *house) cure() cure {
	return cure{cfg: h.cfg, js: h.streams.JetStream(), auditLog: h.auditLog, embedder: h.embedder, log: h.log}
}

// remedy is what is this process's to put back.
func (h *house) remedy() (r store.Remedy) {
	c := h.cure()
	if h.ingest != nil {
		r.Episodes = c.episodes
	}
	if h.consolidator != nil {
		r.Effects = c.effects
	}
	return r
}

// lost is closed while the memory store may lack what it acknowledged; nil where
// it cannot.
func (h *house) lost() <-chan struct{} {
	if m, ok := h.store.(store.Mender); ok {
		return m.Lost()
	}
	return nil
}

// mend returns once the memory store is whole, or ctx has ended. It puts back
// what is this process's to put back and waits for the others.
func (h *house) mend(ctx context.Context) {
	m, ok := h.store.(store.Mender)
	if !ok {
		return
	}
	ticker := time.NewTicker(mendAgain)
	defer ticker.Stop()
	for ctx.Err() == nil {
		err := m.Mend(ctx, h.remedy())
		if err == nil || ctx.Err() != nil {
			return
		}
		h.log.Error("mend the memory store", "error", err)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// keepWhole mends the memory store whenever it is lost, and tries again to heal
// what could not be.
func (h *house) keepWhole(ctx context.Context, healed error) {
	ticker := time.NewTicker(healAgain)
	defer ticker.Stop()
	for {
		var again <-chan time.Time
		if healed != nil {
			again = ticker.C
		}
		select {
		case <-ctx.Done():
			return
		case <-h.lost():
			h.healing.begin()
			if h.consolidator != nil {
				h.consolidator.Forget()
			}
			h.mend(ctx)
		case <-again:
		}
		if ctx.Err() == nil {
			healed = h.heal(ctx)
		}
	}
}
