package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/erasure"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
)

// eraser opens the files and servers of a data directory that is not in use, to erase
// from them.
type eraser struct {
	cfg      Config
	embedder embed.Info
	now      func() time.Time
	log      *slog.Logger
}

func (e eraser) broker() broker.EmbeddedConfig {
	return broker.EmbeddedConfig{Dir: e.cfg.dataPath(natsDir), Private: true, Logger: e.log}
}

// finish completes an interrupted change of the files of the streams.
func (e eraser) finish() error {
	if absentDir(e.broker().Dir) {
		return nil
	}
	return broker.ResumeRewrite(e.broker().Dir)
}

func absentDir(dir string) bool {
	_, err := os.Stat(dir)
	return os.IsNotExist(err)
}

// run finishes every pending erasure.
func (e eraser) run(ctx context.Context) ([]erasure.Receipt, error) {
	deps := erasure.Deps{Memory: e.inMemory, Log: e.inLog, Discard: e.discardDrafts, Now: e.now, Logger: e.log}
	if !absentDir(e.broker().Dir) {
		deps.Streams = stoppedStreams(e.broker())
	}
	return e.cfg.erasures.Finish(ctx, deps)
}

// stoppedStreams are those of a broker that is not running.
type stoppedStreams broker.EmbeddedConfig

func (s stoppedStreams) Rewrite(ctx context.Context, job string, edit erasure.Edit) (map[string]uint64, error) {
	return broker.Rewrite(ctx, broker.EmbeddedConfig(s), job, edit)
}

func (s stoppedStreams) Count(ctx context.Context, edit erasure.Edit) (uint64, error) {
	return broker.Count(ctx, broker.EmbeddedConfig(s), edit)
}

func (s stoppedStreams) LastSequence(ctx context.Context, stream string) (uint64, error) {
	return broker.LastSequence(ctx, broker.EmbeddedConfig(s), stream)
}

func (s stoppedStreams) Publish(ctx context.Context, m *nats.Msg) (err error) {
	to, err := broker.StartEmbedded(broker.EmbeddedConfig(s))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Shutdown(context.WithoutCancel(ctx))) }()
	_, err = to.JetStream().PublishMsg(ctx, m)
	return err
}

// backends are the backend that a setting names and the file of the data directory,
// which stays there when another backend is chosen. A file that is not there is left out.
func (e eraser) backends(chosen, file string) (list []string) {
	if chosen != backendFile {
		list = append(list, chosen)
	}
	if !absent(e.cfg.dataPath(file)) {
		list = append(list, backendFile)
	}
	return list
}

// inMemory calls use with each memory store that there is.
func (e eraser) inMemory(ctx context.Context, use func(store.Eraser) error) error {
	for _, backend := range e.backends(e.cfg.Memory, memoryFile) {
		cfg := e.cfg
		cfg.Memory = backend
		opened, _, err := openMemory(ctx, cfg, e.embedder, e.now, e.log)
		if err != nil {
			return err
		}
		if err := errors.Join(used(opened, use), opened.Close()); err != nil {
			return err
		}
	}
	return nil
}

// inLog calls use with each audit log that there is.
func (e eraser) inLog(ctx context.Context, use func(audit.Eraser) error) error {
	for _, backend := range e.backends(e.cfg.Audit, auditFile) {
		cfg := e.cfg
		cfg.Audit = backend
		opened, _, err := openAudit(ctx, cfg, e.log)
		if err != nil {
			return err
		}
		if err := errors.Join(used(opened, use), opened.Close()); err != nil {
			return err
		}
	}
	return nil
}

// used calls use with a backend, which must be able to erase.
func used[E any](opened any, use func(E) error) error {
	from, ok := opened.(E)
	if !ok {
		return fmt.Errorf("%T cannot erase", opened)
	}
	return use(from)
}

// discardDrafts removes what a killed rebuild or import left, and the older store where
// there is no present one.
func (e eraser) discardDrafts() error {
	path := e.cfg.dataPath(memoryFile)
	errs := []error{sqlite.Discard(path + newSuffix), os.RemoveAll(e.cfg.dataPath(natsDir) + importSuffix)}
	if absent(path) {
		errs = append(errs, sqlite.Discard(path+sqlite.KeptSuffix))
	}
	return errors.Join(errs...)
}
