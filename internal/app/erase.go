package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/erasure"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// errErase ends a run, so that the next one begins with the erasure.
var errErase = errors.New("an erasure was asked for")

// alone reports whether all streams are in files of this process. Then no other process
// can write to the stores, and an erasure can rewrite everything while this one rests.
func (c Config) alone() bool { return c.NATS.URL == natsEmbedded }

// openErasures opens the erasures of the data directory, and completes a change of
// files that a death interrupted. Where the broker is of others, tombstones of a broker
// that was embedded before stay in force, and a job has to be finished first.
func (c *Config) openErasures() error {
	if !c.alone() {
		return c.openTombstones()
	}
	if err := writable(c.Data); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	book, err := erasure.Open(c.Data)
	if err != nil {
		return err
	}
	c.erasures = book
	return nil
}

func (c *Config) openTombstones() error {
	there, err := erasure.Any(c.Data)
	if err != nil || !there {
		return err
	}
	if c.erasures, err = erasure.Open(c.Data); err != nil {
		return err
	}
	if len(c.erasures.Pending()) > 0 {
		return fmt.Errorf("%w; it needs the embedded broker: nats.url is %s", erasure.ErrPending, config.MaskURL(c.NATS.URL))
	}
	return nil
}

// born is the incarnation of a scope without a row; see [erasure.Book.Born].
func (c Config) born() func(project, user string) uint64 {
	if c.erasures == nil {
		return nil
	}
	return c.erasures.Born
}

// erased is as in [ingest.Deps].
func (c Config) erased() func(project, user string, sequence uint64, arrived time.Time) bool {
	if c.erasures == nil {
		return nil
	}
	return c.erasures.Erased
}

// room returns an error unless the disk of the data directory has room to erase.
func (c Config) room() error {
	return erasure.Room(c.Data, func(dir string) (int64, error) {
		space, err := broker.Measure(dir)
		return space.Free, err
	})
}

// prepareErasures opens the erasures before anything else is opened.
func (h *process) prepareErasures(context.Context) error {
	if err := h.cfg.openErasures(); err != nil || h.cfg.erasures == nil || len(h.cfg.erasures.Pending()) == 0 {
		return err
	}
	eraser := eraser{h.cfg, h.embedder.Info(), h.now, h.log}
	return eraser.finish()
}

// eraseAsked finishes the erasures that were asked for. Nothing else runs yet.
func (h *process) eraseAsked(ctx context.Context) error {
	if h.cfg.erasures == nil {
		return nil
	}
	_, err := eraser{h.cfg, h.embedder.Info(), h.now, h.log}.run(ctx)
	return err
}

// Erase erases a user, or the user of a receipt, from the files of a Palimpsest that
// is not running, and finishes the jobs of before. It returns the receipts.
func (inv *Invocation) Erase(data, user string, receipt *erasure.Receipt) ([]erasure.Receipt, error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return nil, err
	}
	if !cfg.alone() {
		return nil, errors.New("erasing works where the broker is of this process; nothing was changed")
	}
	if absentDir(cfg.Data) {
		return nil, fmt.Errorf("data: %s does not exist", cfg.Data)
	}
	log := newLogger(cfg.Log, inv.term.Err)
	if err := cfg.openErasures(); err != nil {
		return nil, err
	}
	embedder, err := cfg.Embedder.open()
	if err != nil {
		return nil, err
	}
	project := inv.flags.Project
	if project == "" {
		project = scope.DefaultProject
	}
	if err := cfg.room(); err != nil {
		return nil, err
	}
	e := eraser{*cfg, embedder.Info(), time.Now, log}
	if err := e.finish(); err != nil { // before there is a job, which the process that runs would do at its next start
		return nil, inUse(*cfg, err)
	}
	switch {
	case receipt != nil:
		_, err = cfg.erasures.AskAgain(*receipt, time.Now())
	case user != "":
		_, err = cfg.erasures.Ask(project, user, "", time.Now())
	}
	if err != nil {
		return nil, err
	}
	done, err := e.run(inv.ctx)
	return done, inUse(*cfg, err)
}

// inUse says what to do about a data directory that another process uses.
func inUse(cfg Config, err error) error {
	if errors.Is(err, broker.ErrInUse) || errors.Is(err, store.ErrLocked) || errors.Is(err, audit.ErrLocked) {
		return fmt.Errorf("%w: Palimpsest runs on %s: stop it, or ask it with --server", plain(cfg, err), cfg.Data)
	}
	return err
}
