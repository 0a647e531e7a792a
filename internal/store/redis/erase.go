package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/memory"
	"palimpsest/internal/poll"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

var _ store.Eraser = (*Store)(nil)

// Erase implements [store.Eraser]. It deletes the keys and has each server write its
// files anew: an append-only file holds what was written before it was deleted.
func (s *Store) Erase(ctx context.Context, whom memory.Whom) (out store.Erased, err error) {
	release, err := s.lease(ctx, "build")
	if err == nil && release == nil {
		err = fmt.Errorf("a rebuild or an erasure is under way: %w", store.ErrLocked)
	}
	if err != nil {
		return out, fmt.Errorf("redis: erase: %w", err)
	}
	defer release()
	e, err := s.survey(ctx, whom)
	if err == nil {
		err = e.deleteRows(ctx)
		s.tenure().said.Clear()
		s.tenure().spans.Clear()
	}
	if err == nil {
		e.erased.Beyond, err = s.rewriteFiles(ctx)
	}
	if err != nil {
		return e.erased, fmt.Errorf("redis: erase: %w", err)
	}
	return e.erased, nil
}

// Scan implements [store.Eraser].
func (s *Store) Scan(ctx context.Context, whom memory.Whom) (left uint64, err error) {
	e, err := s.survey(ctx, whom)
	if err != nil {
		return 0, fmt.Errorf("redis: scan: %w", err)
	}
	for _, mine := range e.mine {
		if mine {
			left++
		}
	}
	return left, nil
}

// erasing is the deletion of a user's rows.
type erasing struct {
	*Store
	whom memory.Whom
	mu   sync.Mutex
	// mine says of the scopes of the project, by how the keys of their rows begin,
	// whether they are the user's.
	mine map[string]bool
	// others are the generations that are not in use.
	others map[uint64]bool
	erased store.Erased
}

// survey looks for the user's scopes in all generations. Each row of the index names
// its user, so the rows of a scope whose state is gone are found too.
func (s *Store) survey(ctx context.Context, whom memory.Whom) (*erasing, error) {
	e := &erasing{Store: s, whom: whom, mine: map[string]bool{}, others: map[uint64]bool{}}
	if err := s.eachMatching(ctx, literally(s.cfg.Namespace)+":*", e.look); err != nil {
		return e, err
	}
	indexes, err := s.call(ctx, "FT._LIST")
	if err != nil && isForbidden(err) {
		err = nil // an index without rows holds nothing
	}
	for _, name := range texts(indexes) {
		e.noteGeneration(name + ":")
	}
	return e, err
}

// noteGeneration remembers the generation of a key, unless it is in use.
func (e *erasing) noteGeneration(key string) {
	rest, ours := strings.CutPrefix(key, e.cfg.Namespace+":")
	if !ours || rest[0] != 'g' && rest[0] != 'd' {
		return
	}
	number, _, _ := strings.Cut(rest[1:], ":")
	n, err := strconv.ParseUint(number, 10, 64)
	if err == nil && n != e.layout().generation {
		e.mu.Lock()
		e.others[n] = true
		e.mu.Unlock()
	}
}

// rowOf splits the key of a row into how the keys of its scope begin and its kind.
func (e *erasing) rowOf(key string) (base, kind string, ok bool) {
	base, member, ok := strings.Cut(key, "}:")
	generation, rest, _ := strings.Cut(strings.TrimPrefix(base, e.cfg.Namespace+":"), ":")
	if !ok || generation == "" || !strings.HasPrefix(rest, scope.Encode(e.whom.Project)+":{") {
		return "", "", false
	}
	kind, _, _ = strings.Cut(member, ":")
	return e.cfg.Namespace + ":g" + generation[1:] + ":" + rest + "}:", kind, true
}

// look learns whose the rows of some keys are.
func (e *erasing) look(ctx context.Context, node goredis.Cmdable, keys []string) error {
	asked := map[string]*goredis.StringCmd{}
	pipe := node.Pipeline()
	for _, key := range keys {
		e.noteGeneration(key)
		base, kind, ok := e.rowOf(key)
		if !ok || !strings.Contains(hashes, kind) || !strings.HasPrefix(key, base) {
			continue
		}
		e.mu.Lock()
		_, known := e.mine[base]
		e.mu.Unlock()
		if !known && asked[base] == nil {
			asked[base] = pipe.HGet(ctx, key, "u")
		}
	}
	if len(asked) == 0 {
		return nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for base, tag := range asked {
		if errors.Is(tag.Err(), goredis.Nil) {
			continue // it has expired; another row of the scope tells
		}
		user, err := scope.Decode(tag.Val())
		if tag.Val() == absentLevel || tag.Val() == "" {
			user, err = "", nil
		}
		if err != nil {
			return fmt.Errorf("%w: row of %q: %w", store.ErrDamaged, tag.Val(), err)
		}
		e.mine[base] = e.whom.Owns(scope.Scope{Project: e.whom.Project, User: user})
	}
	return nil
}

// hashes are the kinds of rows that name their user.
const hashes = kindState + kindSession + kindEpisode + kindFact + kindVersion + kindEntity + kindHold + kindOutcome

// deleteRows deletes the states last: a deletion that is repeated finds the scopes by
// them.
func (e *erasing) deleteRows(ctx context.Context) error {
	for n := range e.others {
		if err := e.remove(ctx, layout{e.cfg.Namespace, n}); err != nil {
			return err
		}
	}
	if err := e.eachMatching(ctx, literally(e.cfg.Namespace)+":*", e.deleteSome); err != nil {
		return err
	}
	for _, base := range slices.Sorted(maps.Keys(e.mine)) {
		if !e.mine[base] || !strings.HasPrefix(base, e.layout().root()) {
			continue
		}
		deleted, err := e.call(ctx, "DEL", base+kindState)
		if err != nil {
			return err
		}
		e.erased.Scopes++
		e.erased.Rows += uint64(deleted.(int64)) //nolint:forcetypeassert // DEL counts
	}
	return nil
}

// deleteSome deletes keys of the user's scopes but for their states, the user's
// entries of the wait queue, and the answers that are kept for the
// project.
func (e *erasing) deleteSome(ctx context.Context, node goredis.Cmdable, keys []string) error {
	root := e.layout().root()
	var gone []string
	pipe := node.Pipeline()
	for _, key := range keys {
		base, _, ok := e.rowOf(key)
		switch {
		case ok && e.mine[base]:
			if key != base+kindState {
				gone = append(gone, key)
				pipe.Unlink(ctx, key)
			}
		case key == e.layout().waitQueue():
			if err := e.deleteListed(ctx, node); err != nil {
				return err
			}
		case strings.HasPrefix(key, root+":"+keyRequest+":"):
			kept, err := node.Get(ctx, key).Result()
			if err != nil {
				if errors.Is(err, goredis.Nil) {
					continue // it has expired
				}
				return err
			}
			var r store.Request
			if err := decode("request", []byte(kept), &r); err != nil {
				return err
			}
			if r.Project == e.whom.Project {
				gone = append(gone, key)
				pipe.Unlink(ctx, key)
			}
		}
	}
	if len(gone) == 0 {
		return nil
	}
	replies, err := pipe.Exec(ctx)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, reply := range replies { // a scan may name a key twice
		if n := uint64(reply.(*goredis.IntCmd).Val()); n > 0 { //nolint:forcetypeassert // all are UNLINK
			e.erased.Rows++
			e.count(gone[i])
		}
	}
	return nil
}

// count counts a row that was deleted.
func (e *erasing) count(key string) {
	base, kind, ok := e.rowOf(key)
	switch {
	case !ok || !strings.HasPrefix(key, base):
	case kind == kindEpisode:
		e.erased.Episodes++
	case kind == kindFact:
		e.erased.Facts++
	}
}

// deleteListed deletes the user's entries of the wait queue.
func (e *erasing) deleteListed(ctx context.Context, node goredis.Cmdable) error {
	var gone []any
	for from := int64(0); ; from += sweepBatch {
		entries, err := node.ZRange(ctx, e.layout().waitQueue(), from, from+sweepBatch-1).Result()
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if e.listed(entry) {
				gone = append(gone, entry)
			}
		}
		if len(entries) < sweepBatch {
			break
		}
	}
	for some := range slices.Chunk(gone, sweepBatch) {
		if err := node.ZRem(ctx, e.layout().waitQueue(), some...).Err(); err != nil {
			return err
		}
	}
	return nil
}

// listed reports whether an entry of the wait queue is of the user: it names a row, or the
// key of a scope.
func (e *erasing) listed(entry string) bool {
	if strings.HasPrefix(entry, waitQueueVectors) {
		row, _ := e.layout().parseQueued(entry)
		base, _, ok := e.rowOf(row.key)
		return ok && e.mine[base]
	}
	part := strings.Split(undoubted(entry), " ")
	project, key := 1, len(part)-1
	switch part[0] + " " {
	case waitQueueIdle, waitQueueDue:
		project, key = 2, 3
	}
	if len(part) <= key || key < 2 || part[project] != ordered(e.whom.Project) && part[project] != scope.Encode(e.whom.Project) {
		return false
	}
	fact, err := scope.ParseKey(e.whom.Project, part[key])
	return err == nil && e.whom.Owns(fact)
}

// fileWork are the commands by which a server rewrites its files, the field of
// INFO that says that it does, and the one that says how the last time ended.
var fileWork = []struct{ command, under, ended string }{
	{"BGSAVE SCHEDULE", "rdb_bgsave_in_progress", "rdb_last_bgsave_status"},
	{"BGREWRITEAOF", "aof_rewrite_in_progress", "aof_last_bgrewrite_status"},
}

// filePoll is the pause between questions whether the files are written.
const filePoll = 50 * time.Millisecond

// rewriteFiles has each server replace its snapshot and its append-only file, and
// returns what it could not reach.
func (s *Store) rewriteFiles(ctx context.Context) (beyond []string, err error) {
	var mu sync.Mutex
	each := func(ctx context.Context, node *goredis.Client) error {
		left, err := rewriteFilesOf(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		beyond = append(beyond, left...)
		return err
	}
	switch client := s.client.(type) {
	case *goredis.ClusterClient:
		err = client.ForEachMaster(ctx, each)
	case *goredis.Client:
		err = each(ctx, client)
	}
	slices.Sort(beyond)
	return slices.Compact(beyond), explain(err)
}

func rewriteFilesOf(ctx context.Context, node *goredis.Client) (beyond []string, err error) {
	info, err := idle(ctx, node)
	if err != nil {
		return nil, err
	}
	if n := info["connected_slaves"]; n != "" && n != "0" {
		beyond = append(beyond, "files of Redis replicas: run BGSAVE and BGREWRITEAOF on each")
	}
	for _, work := range fileWork {
		if work.command == "BGREWRITEAOF" && info["aof_enabled"] == "0" {
			continue
		}
		args := with(strings.Fields(work.command))
		err := node.Do(ctx, args...).Err()
		for err != nil && strings.Contains(err.Error(), "in progress") { // another client was faster
			if _, err := idle(ctx, node); err != nil {
				return nil, err
			}
			err = node.Do(ctx, args...).Err()
		}
		if err != nil && isForbidden(err) {
			beyond = append(beyond, "files of Redis, which refused "+work.command+": have them written anew")
			continue
		}
		if err == nil {
			info, err = idle(ctx, node)
		}
		if err == nil && info[work.ended] != "ok" {
			err = fmt.Errorf("%s failed: see the log of the server", work.command)
		}
		if err != nil {
			return nil, err
		}
	}
	return beyond, nil
}

// isForbidden reports whether a server refused a command to us, or to all.
func isForbidden(err error) bool {
	return strings.Contains(err.Error(), "NOPERM ") || strings.Contains(err.Error(), "unknown command")
}

// idle waits until a server writes no file and returns its INFO.
func idle(ctx context.Context, node *goredis.Client) (info fields, err error) {
	err = poll.Until(ctx, filePoll, func() (bool, error) {
		reply, err := node.Info(ctx, "everything").Result()
		info = parseInfo(reply)
		busy := slices.ContainsFunc(fileWork, func(w struct{ command, under, ended string }) bool { return info[w.under] == "1" })
		return !busy && info["aof_rewrite_scheduled"] != "1", err
	})
	return info, err
}
