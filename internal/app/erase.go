package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/embed"
	"palimpsest/internal/erasure"
	"palimpsest/internal/failpoint"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/topology"
	"palimpsest/pkg/api"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
	"palimpsest/services/query"
)

// errErase ends a run, so that what was asked to be erased is erased at the next.
var errErase = errors.New("an erasure was asked for")

// errPending refuses to work on data of which a part is erased.
var errPending = errors.New("an erasure is not finished: start Palimpsest, or run \"palimpsest erase --resume\", to finish it")

// beyond are what no erasure reaches.
var beyond = []string{
	"copies and backups that were made before: apply this receipt to each before it serves",
	"blocks of the disk that held the old files, until the file system uses them again",
	"what left this data directory: logs, answers, messages to consumers of others",
	"user lists of API keys: revoke a key that names the user",
}

// own reports whether all data is in files of this process, which an erasure can
// rewrite while nothing else uses them.
func (c Config) own() bool {
	return c.NATS.URL == natsEmbedded && c.Memory == backendFile && c.Audit == backendFile
}

// openErasures opens the erasures of the data directory, and completes a change of
// files that a death interrupted. It does nothing where data is elsewhere.
func (c *Config) openErasures() error {
	if !c.own() {
		return nil
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

// born is the incarnation of a scope without a row; see [erasure.Book.Born].
func (c Config) born() func(project, user string) uint64 {
	if c.erasures == nil {
		return nil
	}
	return c.erasures.Born
}

// erased is as in [ingest.Deps].
func (c Config) erased() func(project, user string, sequence uint64) bool {
	if c.erasures == nil {
		return nil
	}
	return c.erasures.Erased
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

// eraser erases from the files of a data directory that nobody uses.
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
	pending := e.cfg.erasures.Pending()
	if len(pending) == 0 {
		return nil, nil
	}
	e.log.Warn("erasing users, as was asked; nothing is served meanwhile", "erasures", len(pending))
	began := time.Now()
	done, err := e.cfg.erasures.Run(ctx, erasure.Work{
		Keepers: []erasure.Keeper{
			{Name: failpoint.Streams, Erase: e.eraseStreams, Scan: e.scanStreams},
			{Name: failpoint.Memory, Erase: e.eraseMemory, Scan: e.scanMemory},
			{Name: failpoint.Log, Erase: e.eraseLog, Scan: e.scanLog},
			{Name: failpoint.Announced, Erase: e.announce, Scan: nothing},
		},
		Until: e.until, Now: e.now, Unreachable: beyond,
	})
	if err != nil {
		return done, fmt.Errorf("finish an erasure: %w", err)
	}
	e.log.Warn("users are erased", "erasures", len(done), "took", time.Since(began))
	return done, nil
}

func (e eraser) until(ctx context.Context) (uint64, error) {
	if absentDir(e.broker().Dir) {
		return 0, nil
	}
	return broker.LastSequence(ctx, e.broker(), topology.StreamEpisodes)
}

// dropOf drops the messages of a user. The last four tokens of every subject are a
// scope, as far as it could be read.
func dropOf(whom memory.Whom) broker.Drop {
	return func(_, subject string, _ []byte) bool {
		tokens := strings.Split(subject, ".")
		if len(tokens) < 4 {
			return false
		}
		owner, _ := scope.ParsePartialTokens(strings.Join(tokens[len(tokens)-4:], ".")) // what cannot be read is nobody's
		return whom.Owns(owner)
	}
}

func (e eraser) eraseStreams(ctx context.Context, job string, whom memory.Whom) (map[string]uint64, error) {
	if absentDir(e.broker().Dir) {
		return map[string]uint64{}, nil
	}
	return broker.Rewrite(ctx, e.broker(), job, dropOf(whom))
}

func (e eraser) scanStreams(ctx context.Context, whom memory.Whom) (uint64, error) {
	if absentDir(e.broker().Dir) {
		return 0, nil
	}
	return broker.Count(ctx, e.broker(), dropOf(whom))
}

// inMemory calls use with the memory store, if there is one.
func (e eraser) inMemory(ctx context.Context, use func(store.Eraser) error) (err error) {
	if absent(e.cfg.dataPath(memoryFile)) {
		return nil
	}
	opened, _, err := openMemory(ctx, e.cfg, e.embedder, e.now, e.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	from, ok := opened.(store.Eraser)
	if !ok {
		return fmt.Errorf("%T cannot erase", opened)
	}
	return use(from)
}

func (e eraser) eraseMemory(ctx context.Context, _ string, whom memory.Whom) (removed map[string]uint64, err error) {
	var done store.Erased
	err = e.inMemory(ctx, func(from store.Eraser) error {
		done, err = from.Erase(ctx, whom)
		return err
	})
	return map[string]uint64{"scopes": done.Scopes, "episodes": done.Episodes, "facts": done.Facts, "rows": done.Rows}, err
}

func (e eraser) scanMemory(ctx context.Context, whom memory.Whom) (left uint64, err error) {
	err = e.inMemory(ctx, func(from store.Eraser) error {
		left, err = from.Scan(ctx, whom)
		return err
	})
	return left, err
}

// inLog calls use with the audit log, if there is one.
func (e eraser) inLog(ctx context.Context, use func(audit.Eraser) error) (err error) {
	if absent(e.cfg.dataPath(auditFile)) {
		return nil
	}
	opened, _, err := openAudit(ctx, e.cfg, e.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	from, ok := opened.(audit.Eraser)
	if !ok {
		return fmt.Errorf("%T cannot erase", opened)
	}
	return use(from)
}

func (e eraser) eraseLog(ctx context.Context, _ string, whom memory.Whom) (removed map[string]uint64, err error) {
	var done audit.Erased
	err = e.inLog(ctx, func(from audit.Eraser) error {
		done, err = from.Erase(ctx, whom)
		return err
	})
	return map[string]uint64{"effects": done.Effects, "rows": done.Rows}, err
}

func (e eraser) scanLog(ctx context.Context, whom memory.Whom) (left uint64, err error) {
	err = e.inLog(ctx, func(from audit.Eraser) error {
		left, err = from.Scan(ctx, whom)
		return err
	})
	return left, err
}

// announce writes the record of an erasure to AUDIT, for those who read it.
func (e eraser) announce(ctx context.Context, job string, _ memory.Whom) (_ map[string]uint64, err error) {
	if absentDir(e.broker().Dir) {
		return nil, nil
	}
	r, err := e.cfg.erasures.Get(job)
	if err != nil {
		return nil, err
	}
	to, err := broker.StartEmbedded(e.broker())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Shutdown(context.WithoutCancel(ctx))) }()
	subject, header, body, err := events.Encode(events.Meta{ID: r.ID, Source: "palimpsest/erasure", Time: e.now()}, events.UserErased{
		Header:  events.Header{Scope: scope.Scope{Project: r.Project, User: r.Whom}, Incarnation: r.Incarnation},
		Erasure: r.ID, Until: r.Until, ErasedAt: e.now().UTC(),
	})
	if err != nil {
		return nil, err
	}
	_, err = to.JetStream().PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: body})
	return nil, err
}

// nothing is what a place that holds no data has of a user.
func nothing(context.Context, memory.Whom) (uint64, error) { return 0, nil }

// erasures are what the API asks for. A process ends its run once one is asked for,
// and the next run begins with it.
type erasures struct {
	book  *erasure.Book
	now   func() time.Time
	asked chan struct{}
	once  sync.Once
}

var _ query.Erasures = (*erasures)(nil)

// wanted is closed once an erasure was asked for.
func (e *erasures) wanted() <-chan struct{} {
	if e == nil {
		return nil
	}
	return e.asked
}

// Ask implements [query.Erasures].
func (e *erasures) Ask(_ context.Context, project, user string) (string, error) {
	r, err := e.book.Ask(project, user, e.now())
	if err != nil {
		return "", err
	}
	e.once.Do(func() { close(e.asked) })
	return r.ID, nil
}

// Get implements [query.Erasures].
func (e *erasures) Get(_ context.Context, id string) (api.Receipt, error) {
	r, err := e.book.Get(id)
	if errors.Is(err, erasure.ErrUnknown) {
		err = query.ErrNoErasure
	}
	return r, err
}

// Erase erases a user, or whom a receipt is about, from the files of a Palimpsest that
// is not running, and finishes what was asked for before. It returns the receipts.
func (inv *Invocation) Erase(data, user string, receipt *erasure.Receipt) ([]erasure.Receipt, error) {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return nil, err
	}
	if !cfg.own() {
		return nil, errors.New("erasing works where broker, memory and audit log are of this process; nothing was changed")
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
	switch {
	case receipt != nil:
		_, err = cfg.erasures.AskAgain(*receipt, time.Now())
	case user != "":
		_, err = cfg.erasures.Ask(project, user, time.Now())
	}
	if err != nil {
		return nil, err
	}
	e := eraser{*cfg, embedder.Info(), time.Now, log}
	if err := e.finish(); err != nil {
		return nil, err
	}
	done, err := e.run(inv.ctx)
	if errors.Is(err, broker.ErrInUse) || errors.Is(err, store.ErrLocked) || errors.Is(err, audit.ErrLocked) {
		return done, fmt.Errorf("%w: Palimpsest runs on %s: stop it, or ask it with --server", plain(*cfg, err), cfg.Data)
	}
	return done, err
}
