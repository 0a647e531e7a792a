package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/audit"
	"palimpsest/internal/auth"
	"palimpsest/internal/broker"
	"palimpsest/internal/erasure"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/topology"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// without leaves out the messages of a user, and the user of the lists of API keys. The
// last four tokens of every other subject are a scope, as far as it could be read.
func without(whom memory.Whom, now time.Time) broker.Edit {
	return func(stream, subject string, data []byte) ([]byte, bool) {
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

func (e eraser) eraseStreams(ctx context.Context, job string, whom memory.Whom) (out erasure.Removed, err error) {
	out.Counts = map[string]uint64{}
	if !absentDir(e.broker().Dir) {
		out.Counts, err = broker.Rewrite(ctx, e.broker(), job, without(whom, e.now()))
	}
	return out, err
}

func (e eraser) scanStreams(ctx context.Context, whom memory.Whom) (uint64, error) {
	if absentDir(e.broker().Dir) {
		return 0, nil
	}
	return broker.Count(ctx, e.broker(), without(whom, e.now()))
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

// used calls use with what can erase from a backend.
func used[E any](opened any, use func(E) error) error {
	from, ok := opened.(E)
	if !ok {
		return fmt.Errorf("%T cannot erase", opened)
	}
	return use(from)
}

func (e eraser) eraseMemory(ctx context.Context, _ string, whom memory.Whom) (out erasure.Removed, err error) {
	if err := e.discardDrafts(); err != nil {
		return out, err
	}
	out.Counts = map[string]uint64{}
	err = e.inMemory(ctx, func(from store.Eraser) error {
		done, err := from.Erase(ctx, whom)
		out.Add(map[string]uint64{"scopes": done.Scopes, "episodes": done.Episodes, "facts": done.Facts, "rows": done.Rows}, done.Beyond)
		return err
	})
	return out, err
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

func (e eraser) scanMemory(ctx context.Context, whom memory.Whom) (left uint64, err error) {
	err = e.inMemory(ctx, func(from store.Eraser) error {
		n, err := from.Scan(ctx, whom)
		left += n
		return err
	})
	return left, err
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

func (e eraser) eraseLog(ctx context.Context, _ string, whom memory.Whom) (out erasure.Removed, err error) {
	out.Counts = map[string]uint64{}
	err = e.inLog(ctx, func(from audit.Eraser) error {
		done, err := from.Erase(ctx, whom)
		out.Add(map[string]uint64{"effects": done.Effects, "rows": done.Rows}, done.Beyond)
		return err
	})
	return out, err
}

func (e eraser) scanLog(ctx context.Context, whom memory.Whom) (left uint64, err error) {
	err = e.inLog(ctx, func(from audit.Eraser) error {
		n, err := from.Scan(ctx, whom)
		left += n
		return err
	})
	return left, err
}

// announce writes the record of an erasure to AUDIT, for those who read it.
func (e eraser) announce(ctx context.Context, job string, _ memory.Whom) (none erasure.Removed, err error) {
	if absentDir(e.broker().Dir) {
		return none, nil
	}
	r, err := e.cfg.erasures.Get(job)
	if err != nil {
		return none, err
	}
	to, err := broker.StartEmbedded(e.broker())
	if err != nil {
		return none, err
	}
	defer func() { err = errors.Join(err, to.Shutdown(context.WithoutCancel(ctx))) }()
	subject, header, body, err := events.Encode(events.Meta{ID: r.ID, Source: "palimpsest/erasure", Time: e.now()}, events.UserErased{
		Header:  events.Header{Scope: scope.Scope{Project: r.Project, User: r.Whom}, Incarnation: r.Incarnation},
		Erasure: r.ID, Until: r.Until, ErasedAt: e.now().UTC(),
	})
	if err != nil {
		return none, err
	}
	_, err = to.JetStream().PublishMsg(ctx, &nats.Msg{Subject: subject, Header: header, Data: body})
	return none, err
}

// nothing is what a place that holds no data has of a user.
func nothing(context.Context, memory.Whom) (uint64, error) { return 0, nil }
