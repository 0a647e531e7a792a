package erasure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"palimpsest/internal/audit"
	"palimpsest/internal/auth"
	"palimpsest/internal/failpoint"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// ErrPending refuses to work on data of which a part is erased.
var ErrPending = errors.New("an erasure is not finished: start Palimpsest, or run \"palimpsest erase --resume\", to finish it")

// beyond are what no erasure reaches.
var beyond = []string{
	"copies and backups that were made before: apply this receipt to each before it serves",
	"blocks of the disk that held the old files, until the file system uses them again",
	"what left this data directory: logs, answers, messages to consumers of others",
}

// Edit returns the data that a message of a stream keeps; keep is false where the
// message is left out. Without a sequence, it tells whether any message of the subject may be.
type Edit = func(stream, subject string, sequence uint64, data []byte) (kept []byte, keep bool)

// Streams are the streams of a broker that nothing else reads.
type Streams interface {
	// Rewrite edits all messages for a job, counts those left out or changed by stream,
	// and says what it could not reach. Repeated for the same job it edits nothing again.
	Rewrite(ctx context.Context, job string, edit Edit) (counts map[string]uint64, beyond []string, err error)
	// Count counts the messages that an edit would leave out or change.
	Count(ctx context.Context, edit Edit) (uint64, error)
	// LastSequence is that of the newest message that a stream ever held.
	LastSequence(ctx context.Context, stream string) (uint64, error)
	Publish(ctx context.Context, subject string, header map[string][]string, body []byte) error
}

// Opener opens a [store.Eraser] or an [audit.Eraser].
type Opener = func(ctx context.Context) (io.Closer, error)

// each calls use with each backend, opened.
func each[E any](ctx context.Context, backends []Opener, use func(E) error) error {
	for _, open := range backends {
		opened, err := open(ctx)
		if err != nil {
			return err
		}
		from, ok := opened.(E)
		if !ok {
			return errors.Join(fmt.Errorf("%T cannot erase", opened), opened.Close())
		}
		if err := errors.Join(use(from), opened.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Deps are the places of an installation that is not in use.
type Deps struct {
	// Streams are those of each broker that there is. The first is the one in use; it has
	// EPISODES and AUDIT.
	Streams []Streams
	// Memory opens each memory store, and Log each audit log, that there is.
	Memory, Log []Opener
	// Discard removes what a killed rebuild or import left.
	Discard func() error
	Now     func() time.Time
	Logger  *slog.Logger
}

// Finish finishes every pending job of the book in all places, and returns the receipts.
func (b *Book) Finish(ctx context.Context, deps Deps) ([]Receipt, error) {
	pending := b.Pending()
	if len(pending) == 0 {
		return nil, nil
	}
	deps.Logger.Warn("erasing users; no requests are served meanwhile", "erasures", len(pending))
	began := time.Now()
	p := places{deps, b}
	done, err := b.Run(ctx, Work{
		Erasers: []Eraser{
			{Name: failpoint.Streams, Erase: p.eraseStreams, Scan: p.scanStreams},
			{Name: failpoint.Memory, Erase: p.eraseMemory, Scan: p.scanMemory},
			{Name: failpoint.Log, Erase: p.eraseLog, Scan: p.scanLog},
			{Name: failpoint.Announced, Erase: p.announce, Scan: nothing},
		},
		Until: p.until, Now: deps.Now, Unreachable: beyond,
	})
	if err != nil {
		return done, fmt.Errorf("finish an erasure: %w", err)
	}
	deps.Logger.Warn("users were erased", "erasures", len(done), "took", time.Since(began))
	return done, nil
}

// places are the erasers of an installation.
type places struct {
	Deps
	book *Book
}

func (p places) until(ctx context.Context) (uint64, error) {
	if len(p.Streams) == 0 {
		return 0, nil
	}
	return p.Streams[0].LastSequence(ctx, topology.StreamEpisodes)
}

// without leaves out the messages of a user, and the user of the lists of API keys. The
// last four tokens of every other subject are a scope, as far as it could be read. Episodes
// behind until are of a new user: an external broker accepts some meanwhile.
func without(whom memory.Whom, until uint64, now time.Time) Edit {
	return func(stream, subject string, sequence uint64, data []byte) ([]byte, bool) {
		if stream == topology.StreamEpisodes && sequence > until {
			return data, true
		}
		if stream == topology.StreamKeys && sequence == 0 {
			return data, true // no data, no list
		}
		if stream == topology.StreamKeys {
			return auth.Forget(data, whom.Project, whom.Is, now), true
		}
		tokens := strings.Split(subject, ".")
		if len(tokens) < 4 {
			return data, true
		}
		owner, _ := scope.ParsePartialTokens(strings.Join(tokens[len(tokens)-4:], ".")) // an unreadable level is empty
		return data, !whom.Owns(owner)
	}
}

func (p places) eraseStreams(ctx context.Context, job string, whom memory.Whom) (Removed, error) {
	out := Removed{Counts: map[string]uint64{}}
	r, err := p.book.Get(job)
	for _, s := range p.Streams {
		if err != nil {
			break
		}
		var counts map[string]uint64
		var beyond []string
		counts, beyond, err = s.Rewrite(ctx, job, without(whom, r.Until, p.Now()))
		out.Add(counts, beyond)
	}
	return out, err
}

func (p places) scanStreams(ctx context.Context, job string, whom memory.Whom) (left uint64, err error) {
	r, err := p.book.Get(job)
	for _, s := range p.Streams {
		if err != nil {
			break
		}
		var n uint64
		n, err = s.Count(ctx, without(whom, r.Until, p.Now()))
		left += n
	}
	return left, err
}

func (p places) eraseMemory(ctx context.Context, _ string, whom memory.Whom) (out Removed, err error) {
	if err := p.Discard(); err != nil {
		return out, err
	}
	out.Counts = map[string]uint64{}
	err = each(ctx, p.Memory, func(from store.Eraser) error {
		done, err := from.Erase(ctx, whom)
		out.Add(map[string]uint64{"scopes": done.Scopes, "episodes": done.Episodes, "facts": done.Facts, "rows": done.Rows}, done.Beyond)
		return err
	})
	return out, err
}

func (p places) scanMemory(ctx context.Context, _ string, whom memory.Whom) (left uint64, err error) {
	err = each(ctx, p.Memory, func(from store.Eraser) error {
		n, err := from.Scan(ctx, whom)
		left += n
		return err
	})
	return left, err
}

func (p places) eraseLog(ctx context.Context, _ string, whom memory.Whom) (out Removed, err error) {
	out.Counts = map[string]uint64{}
	err = each(ctx, p.Log, func(from audit.Eraser) error {
		done, err := from.Erase(ctx, whom)
		out.Add(map[string]uint64{"effects": done.Effects, "rows": done.Rows}, done.Beyond)
		return err
	})
	return out, err
}

func (p places) scanLog(ctx context.Context, _ string, whom memory.Whom) (left uint64, err error) {
	err = each(ctx, p.Log, func(from audit.Eraser) error {
		n, err := from.Scan(ctx, whom)
		left += n
		return err
	})
	return left, err
}

// announce writes the record of an erasure to AUDIT, for those who read it.
func (p places) announce(ctx context.Context, job string, _ memory.Whom) (none Removed, err error) {
	if len(p.Streams) == 0 {
		return none, nil
	}
	r, err := p.book.Get(job)
	if err != nil {
		return none, err
	}
	subject, header, body, err := events.Encode(events.Meta{ID: r.ID, Source: "palimpsest/erasure", Time: p.Now()}, events.UserErased{
		Header:  events.Header{Scope: scope.Scope{Project: r.Project, User: r.Whom}, Incarnation: r.Incarnation},
		Erasure: r.ID, Until: r.Until, ErasedAt: p.Now().UTC(),
	})
	if err != nil {
		return none, err
	}
	return none, p.Streams[0].Publish(ctx, subject, header, body)
}

// nothing is what a place that holds no data has of a user.
func nothing(context.Context, string, memory.Whom) (uint64, error) { return 0, nil }
