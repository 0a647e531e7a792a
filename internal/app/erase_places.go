package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"palimpsest/internal/audit"
	"palimpsest/internal/broker"
	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/internal/store/sqlite"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// dropOf drops the messages of a user. The last four tokens of every subject are a
// scope, as far as it could be read.
func dropOf(whom memory.Whom) broker.Drop {
	return func(_, subject string, _ []byte) bool {
		tokens := strings.Split(subject, ".")
		if len(tokens) < 4 {
			return false
		}
		owner, _ := scope.ParsePartialTokens(strings.Join(tokens[len(tokens)-4:], ".")) // an unreadable level is empty
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
	if err := e.discardDrafts(); err != nil {
		return nil, err
	}
	var done store.Erased
	err = e.inMemory(ctx, func(from store.Eraser) error {
		done, err = from.Erase(ctx, whom)
		return err
	})
	return map[string]uint64{"scopes": done.Scopes, "episodes": done.Episodes, "facts": done.Facts, "rows": done.Rows}, err
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
