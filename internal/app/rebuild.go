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
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/erasure"
	"palimpsest/internal/recovery"
	"palimpsest/internal/store"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/services/ingest"
)

// newSuffix names the memory store's file while it is built.
const newSuffix = ".new"

// Rebuilt is the result of a rebuild.
type Rebuilt struct {
	recovery.Result
	Switched bool   `json:"switched"`
	Kept     string `json:"kept,omitempty"` // where the generation before is kept
}

// Rebuild rebuilds the memory store of a stopped Palimpsest, whose data directory is
// data, and shows its progress.
func (inv *Invocation) Rebuild(data string, mode RebuildMode) (out Rebuilt, err error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return out, err
	}
	shown := terminal.NewProgress(inv.term.Err)
	out, err = rebuild(inv.ctx, *cfg, newLogger(cfg.Log, inv.term.Err), shown, mode)
	shown.Wait()
	if cfg.Memory == backendFile && errors.Is(err, store.ErrLocked) || errors.Is(err, broker.ErrInUse) || errors.Is(err, audit.ErrLocked) {
		return out, fmt.Errorf("%w: a running Palimpsest must be stopped before its memory store is rebuilt", plain(*cfg, err))
	}
	return out, plain(*cfg, err)
}

// RebuildMode is what a rebuild may do.
type RebuildMode struct {
	Check  bool   // only compare
	Accept uint64 // how many episodes and facts may be lost
}

// rebuilding opens what a rebuild reads from, and closes it.
type rebuilding struct {
	cfg   Config
	log   *slog.Logger
	shown *terminal.Progress

	streams     streams
	journal     *journal.Journal
	auditLog    audit.Log
	embedder    embed.Embedder
	generations generations
	live        store.Store // nil where it cannot be opened
	in          recovery.Inputs
	work        *recovery.Rebuild

	closers []closer
	out     Rebuilt
}

// rebuild builds the memory store anew beside the one that is there, and puts it
// in its place unless mode.Check is set. Killed at any moment, it leaves one of
// the two, whole. Files of the data directory must not be in use. It returns a [*recovery.LossError] where the new store would have fewer
// episodes or facts than mode.Accept allows.
func rebuild(ctx context.Context, cfg Config, log *slog.Logger, shown *terminal.Progress, mode RebuildMode) (out Rebuilt, err error) {
	if cfg.erasures == nil && !absentDir(cfg.Data) {
		if err := cfg.openErasures(); err != nil {
			return out, fmt.Errorf("rebuild: %w", err)
		}
		if cfg.erasures != nil && len(cfg.erasures.Pending()) > 0 {
			return out, fmt.Errorf("rebuild: %w", erasure.ErrPending)
		}
	}
	r := &rebuilding{cfg: cfg, log: log, shown: shown}
	if r.embedder, err = cfg.Embedder.open(); err != nil {
		return r.out, fmt.Errorf("rebuild: %w", err)
	}
	defer func() { err = errors.Join(err, r.close()) }()
	steps := []func(context.Context) error{r.openStreams, r.openLive}
	if mode.Check {
		steps = append(steps, r.compare)
	} else {
		steps = append(steps, r.copy, func(context.Context) error { return r.work.Accept(mode.Accept) }, r.complete, r.resumeAudit, r.replace)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return r.out, fmt.Errorf("rebuild: %w", err)
		}
	}
	return r.out, nil
}

// openStreams opens the streams. An embedded broker accepts no clients, so that the
// streams do not grow during the rebuild. A shared broker does; the messages that
// it receives meanwhile are recovered after the switch.
func (r *rebuilding) openStreams(ctx context.Context) (err error) {
	if r.cfg.NATS.URL == natsEmbedded {
		r.streams, err = openOwn(r.cfg, r.log)
	} else {
		r.streams, err = openStreams(ctx, r.cfg, "rebuild", r.log)
	}
	if err != nil {
		return err
	}
	r.later("broker", r.streams.Shutdown)
	r.journal = journal.New(r.streams.JetStream())
	if r.auditLog, _, err = openAudit(ctx, r.cfg, r.log); err != nil {
		return err
	}
	r.later("audit log", func(context.Context) error { return r.auditLog.Close() })
	r.generations = files{r.cfg, r.log}
	if r.cfg.Memory != backendFile {
		r.generations = indexes{r.cfg, r.log, r.cfg.repair(r.streams, r.auditLog, r.embedder, r.log)}
	}
	return nil
}

// openOwn opens streams in the data directory and listens on no address. Missing
// streams are made, empty, where there is a memory store.
func openOwn(cfg Config, log *slog.Logger) (streams, error) {
	dir := cfg.dataPath(natsDir)
	if _, err := os.Stat(dir); os.IsNotExist(err) && (cfg.Memory != backendFile || absent(cfg.dataPath(memoryFile))) {
		return nil, &userError{fmt.Sprintf("data: %s holds no streams to build from", cfg.Data), err}
	} else if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	own, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true, Sync: broker.Sync(cfg.NATS.Sync), Logger: log})
	if err != nil {
		return nil, err
	}
	return own, nil
}

// openLive opens the store that is there. That it cannot be read is why there is
// a rebuild.
func (r *rebuilding) openLive(ctx context.Context) (err error) {
	js := r.streams.JetStream()
	r.in = recovery.Inputs{
		Begin: func(ctx context.Context) (recovery.Draft, error) { return r.generations.begin(ctx, r.embedder.Info()) },
		Discard: func(ctx context.Context, made recovery.Draft) error {
			return r.generations.discard(ctx, made)
		},
		Count: r.count, Episodes: episodesOf(js), Effects: effectsOf(js), Holds: holdsEpisode(js), Journal: r.journal, Log: r.auditLog,
		Erased: r.cfg.erased(),
		Ingest: r.cfg.Ingest, Consolidator: r.cfg.Consolidator, Embedder: r.embedder, Part: r.shown.Part, Logger: r.log,
	}
	if r.in.Said, err = extent(ctx, js, topology.StreamEpisodes); err != nil {
		return err
	}
	if r.in.Committed, err = extent(ctx, js, topology.StreamAudit); err != nil {
		return err
	}
	live, err := r.generations.live(ctx)
	switch {
	case err == nil:
		r.live, r.in.Live = live, live
	case errors.Is(err, store.ErrDamaged):
		r.in.LiveError, r.in.LiveDamaged = err, true
	case errors.Is(err, errAbsent):
		r.in.LiveError = err
	default:
		return err
	}
	r.work = recovery.New(r.in)
	return nil
}

// extent is what a stream holds.
func extent(ctx context.Context, js jetstream.JetStream, name string) (recovery.Extent, error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return recovery.Extent{}, fmt.Errorf("look up stream %s: %w", name, err)
	}
	state := stream.CachedInfo().State
	return recovery.Extent{First: state.FirstSeq, Last: state.LastSeq, Messages: state.Msgs}, nil
}

// holdsEpisode asks EPISODES for messages by their sequence.
func holdsEpisode(js jetstream.JetStream) func(ctx context.Context, sequence uint64) (bool, error) {
	return func(ctx context.Context, sequence uint64) (bool, error) {
		stream, err := js.Stream(ctx, topology.StreamEpisodes)
		if err != nil {
			return false, fmt.Errorf("look up stream %s: %w", topology.StreamEpisodes, err)
		}
		_, err = stream.GetMsg(ctx, sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}

// count sets the ordinals of the store that is built anew.
func (r *rebuilding) count(ctx context.Context, said *ingest.Service, live store.Store, into recovery.Draft) error {
	c := recovery.Counting{Ingest: said, Episodes: episodesOf(r.streams.JetStream()), Log: r.auditLog, Journal: r.journal, Into: into}
	if live != nil {
		c.Live = live
	}
	return c.Run(ctx)
}

func (r *rebuilding) compare(ctx context.Context) (err error) {
	if r.out.Result, err = r.work.Compare(ctx); err != nil {
		return err
	}
	// Removing what was made takes as long as there is much of it, and is no part
	// of closing.
	return r.generations.discard(ctx, r.work.Release())
}

func (r *rebuilding) copy(ctx context.Context) (err error) {
	r.out.Result, err = r.work.Make(ctx)
	return err
}

func (r *rebuilding) complete(ctx context.Context) error {
	return r.work.Complete(ctx, func(ctx context.Context, made recovery.Draft, live store.Store) error {
		return r.generations.inherit(ctx, made, live)
	})
}

// resumeAudit lets AUDIT, if it was lost or cut short, go on behind the newest
// effect that the new store has: an append names the sequence of its scope's
// newest effect. What AUDIT still holds is in the audit log then.
func (r *rebuilding) resumeAudit(ctx context.Context) error {
	if r.out.AuditEnd <= r.in.Committed.Last {
		return nil
	}
	if _, err := r.work.FillLog(ctx); err != nil {
		return err
	}
	r.log.Warn("AUDIT lacks its end and goes on behind it; the audit log has what it held", "last", r.in.Committed.Last, "resumed_at", r.out.AuditEnd+1)
	return r.journal.ResumeAt(ctx, r.out.AuditEnd+1)
}

// replace switches over. A broker's directory stays locked until it is done, so
// that no other process begins to use the file in between.
func (r *rebuilding) replace(ctx context.Context) (err error) {
	made, live := r.work.Release(), r.live
	r.live = nil
	r.out.Kept, err = r.generations.promote(ctx, made, live)
	r.out.Switched = err == nil
	return err
}

func (r *rebuilding) later(name string, undo func(context.Context) error) {
	r.closers = append(r.closers, closer{name, undo})
}

// close removes what was made and not taken, and closes what was opened.
func (r *rebuilding) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	var errs []error
	if r.work != nil && r.work.Made() != nil {
		errs = append(errs, r.generations.discard(ctx, r.work.Release()))
	}
	if r.live != nil {
		errs = append(errs, r.live.Close())
	}
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i].close(ctx))
	}
	return errors.Join(errs...)
}
