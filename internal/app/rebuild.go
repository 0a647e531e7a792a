package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/topology"
	"palimpsest/services/consolidator"
	"palimpsest/services/ingest"
)

// newSuffix names the memory store's file while it is built.
const newSuffix = ".new"

type rebuildCommand struct {
	Data  string `help:"Data directory of a stopped Palimpsest, if its streams or its memory are files; ./palimpsest-data unless configured." placeholder:"DIR"`
	Check bool   `help:"Only compare: the memory store stays as it is, and digests that differ are an error."`
}

// rebuilt is what came of a rebuild.
type rebuilt struct {
	Live      string `json:"live"` // digest, empty where the store cannot be read
	LiveError string `json:"live_error,omitempty"`
	Rebuilt   string `json:"rebuilt"`
	Episodes  int    `json:"episodes"`
	Effects   int    `json:"effects"`
	Scopes    int    `json:"scopes"`
	Moved     int    `json:"moved"` // places of the live store with another episode, or none
	Switched  bool   `json:"switched"`
	Kept      string `json:"kept,omitempty"` // where the generation before is kept
}

// Run implements the command. With --check, digests that differ are an error.
func (c *rebuildCommand) Run(inv *invocation) error {
	cfg, _, err := inv.configuration(map[string]string{"data": c.Data})
	if err != nil {
		return err
	}
	shown := newProgress(inv.term.Err)
	out, err := rebuild(inv.ctx, *cfg, newLogger(cfg.Log, inv.term.Err), shown, c.Check)
	shown.wait()
	if cfg.Memory == backendFile && errors.Is(err, store.ErrLocked) || errors.Is(err, broker.ErrInUse) || errors.Is(err, audit.ErrLocked) {
		return fmt.Errorf("%w: a running Palimpsest must be stopped before its memory store is rebuilt", plain(*cfg, err))
	}
	if err != nil {
		return plain(*cfg, err)
	}
	err = inv.print(out, func(w io.Writer) { out.tell(w) })
	if err == nil && c.Check && (out.Live != out.Rebuilt || out.Moved > 0) {
		return errors.New("the memory store differs from what the streams make of it")
	}
	return err
}

func (r rebuilt) tell(w io.Writer) {
	live := r.Live
	if live == "" {
		live = "unreadable: " + r.LiveError
	}
	_, _ = fmt.Fprintf(w, "live     %s\nrebuilt  %s\n%d episodes, %d effects, %d scopes\n", live, r.Rebuilt, r.Episodes, r.Effects, r.Scopes)
	if r.Moved > 0 {
		_, _ = fmt.Fprintf(w, "%d places of the live store hold another episode than in the rebuilt one, or none\n", r.Moved)
	}
	if r.Switched {
		_, _ = fmt.Fprintln(w, "switched to the rebuilt store")
	}
	if r.Kept != "" {
		_, _ = fmt.Fprintf(w, "the one before is kept as %s\n", r.Kept)
	}
}

// rebuilding is one run of a rebuild: what it reads from and what it makes.
type rebuilding struct {
	cfg   Config
	log   *slog.Logger
	shown *progress

	streams     streams
	journal     *broker.Journal
	auditLog    audit.Log
	embedder    embed.Embedder
	generations generations
	live        store.Store // nil where it cannot be read
	made        draft
	ingest      *ingest.Service
	commits     *consolidator.Service

	closers []closer
	out     rebuilt
}

// rebuild builds the memory store anew beside the one that is there, and puts it in
// its place unless check is set. Killed at any moment, it leaves one of the two,
// whole. What is a file, or read from streams that are, must not be in use.
func rebuild(ctx context.Context, cfg Config, log *slog.Logger, shown *progress, check bool) (out rebuilt, err error) {
	r := &rebuilding{cfg: cfg, log: log, shown: shown, embedder: local.New()}
	defer func() { err = errors.Join(err, r.close()) }()
	steps := []func(context.Context) error{r.openStreams, r.openLive, r.begin, r.copy, r.compare}
	if check {
		steps = append(steps, r.drop)
	} else {
		steps = append(steps, r.complete, r.replace)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return r.out, fmt.Errorf("rebuild: %w", err)
		}
	}
	return r.out, nil
}

// openStreams lets nobody in where the streams are files: what is read must not
// grow then. Where they are a broker's of others, what comes meanwhile is put
// back after the switch.
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
	r.journal = broker.NewJournal(r.streams.JetStream())
	if r.auditLog, _, err = openAudit(ctx, r.cfg, r.log); err != nil {
		return err
	}
	r.later("audit log", func(context.Context) error { return r.auditLog.Close() })
	r.generations = files{r.cfg, r.log}
	if r.cfg.Memory != backendFile {
		r.generations = indexes{r.cfg, r.log, cure{
			cfg: r.cfg, js: r.streams.JetStream(), auditLog: r.auditLog, embedder: r.embedder, log: r.log,
		}}
	}
	return nil
}

// openOwn opens streams that are files, and lets nobody else in.
func openOwn(cfg Config, log *slog.Logger) (streams, error) {
	dir := cfg.dataPath(natsDir)
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		return nil, &userError{fmt.Sprintf("data: %s holds no streams to build from", cfg.Data), err}
	} else if err != nil {
		return nil, err
	}
	own, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: dir, Private: true, Sync: broker.Sync(cfg.NATS.Sync), Logger: log})
	if err != nil {
		return nil, err
	}
	return own, nil
}

// openLive takes the digest of the store that is there. One that cannot be read
// is why there is a rebuild.
func (r *rebuilding) openLive(ctx context.Context) error {
	var err error
	if r.live, err = r.generations.live(ctx); err == nil {
		if r.out.Live, err = store.Digest(ctx, r.live, memory.ExportFull); err != nil {
			err = errors.Join(err, r.closeLive())
		}
	}
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, errAbsent) {
		r.out.LiveError = err.Error()
		return nil
	}
	return err
}

func (r *rebuilding) closeLive() error {
	live := r.live
	r.live = nil
	if live == nil {
		return nil
	}
	return live.Close()
}

// begin opens an empty store beside.
func (r *rebuilding) begin(ctx context.Context) (err error) {
	if r.made, err = r.generations.begin(ctx, r.embedder.Info()); err != nil {
		return err
	}
	r.ingest, err = ingest.New(r.cfg.Ingest, ingest.Deps{Episodes: r.made, Vectors: r.made, Embedder: r.embedder})
	if err != nil {
		return err
	}
	r.commits, err = consolidator.New(r.cfg.Consolidator, consolidator.Deps{
		Applier: r.made, Facts: r.made, Outcomes: r.made, Journal: r.journal, Log: r.auditLog, Kept: r.auditLog, Logger: r.log,
	})
	return err
}

// copy stores what was said and applies what came of it.
func (r *rebuilding) copy(ctx context.Context) error {
	if err := r.copySaid(ctx); err != nil {
		return err
	}
	step, end := r.shown.part("effects", r.messages(ctx, topology.StreamAudit))
	applied, err := r.commits.Rebuild(ctx, r.journal, func() { step(1) })
	end()
	r.out.Effects, r.out.Scopes = applied.Effects, applied.Scopes
	if err != nil {
		return err
	}
	return r.made.Settle(ctx)
}

// copySaid reads EPISODES, and before it what EPISODES dropped since from the
// store that is there: nobody else has it.
func (r *rebuilding) copySaid(ctx context.Context) error {
	past := pastOf(r.streams.JetStream())
	begin, err := past.Begin(ctx)
	if err != nil {
		return err
	}
	step, end := r.shown.part("episodes", r.messages(ctx, topology.StreamEpisodes))
	defer end()
	if begin > 1 {
		if err := r.resume(ctx, begin); err != nil {
			return err
		}
	}
	said, err := r.ingest.Rebuild(ctx, past, func() { step(1) })
	r.out.Episodes += said
	return err
}

// resume stores what EPISODES dropped before begin, as far as the live store has
// it, and counts on behind the rest.
func (r *rebuilding) resume(ctx context.Context, begin uint64) error {
	if r.live == nil {
		r.log.Warn("what EPISODES has dropped cannot be stored again", "before", begin)
	} else if err := r.ingest.Adopt(ctx, r.live, func() { r.out.Episodes++ }); err != nil {
		return err
	}
	return r.count(ctx)
}

// messages is how many a stream holds: what is about to be read.
func (r *rebuilding) messages(ctx context.Context, name string) uint64 {
	stream, err := r.streams.JetStream().Stream(ctx, name)
	if err != nil {
		return 0 // it is for show alone
	}
	return stream.CachedInfo().State.Msgs
}

func (r *rebuilding) compare(ctx context.Context) (err error) {
	if r.out.Rebuilt, err = store.Digest(ctx, r.made, memory.ExportFull); err != nil || r.live == nil {
		return err
	}
	r.out.Moved, err = ingest.Moved(ctx, r.live, r.made)
	return err
}

// drop removes what was made only to be compared. That takes as long as there is
// much of it, and is no part of closing.
func (r *rebuilding) drop(ctx context.Context) error {
	made := r.made
	r.made = nil
	return r.generations.discard(ctx, made)
}

// complete adds what is no part of the comparison. Without vectors a store works
// as well, and they follow: an embedder that is down stops nothing.
func (r *rebuilding) complete(ctx context.Context) error {
	if r.live != nil {
		if err := r.generations.inherit(ctx, r.made, r.live); err != nil {
			return err
		}
	}
	stats, err := r.made.Stats(ctx)
	if err != nil {
		return err
	}
	step, end := r.shown.part("vectors", stats.VectorsPending)
	err = r.ingest.EmbedAll(ctx, r.made.Settle, step)
	end()
	if err != nil && ctx.Err() == nil {
		r.log.Warn("vectors follow later", "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	return r.made.Seal(ctx)
}

// replace switches over. A broker's directory stays locked until it is done, so
// that no other process begins to use the file in between.
func (r *rebuilding) replace(ctx context.Context) (err error) {
	made, live := r.made, r.live
	r.made, r.live = nil, nil
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
	if r.made != nil {
		errs = append(errs, r.generations.discard(ctx, r.made))
	}
	errs = append(errs, r.closeLive())
	for i := len(r.closers) - 1; i >= 0; i-- {
		errs = append(errs, r.closers[i].close(ctx))
	}
	return errors.Join(errs...)
}
