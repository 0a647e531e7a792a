package redis

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The wait queue of a generation is a sorted set, ordered by member alone. It lists what
// a clock or a worker asks for, of all scopes, so that nothing searches for that. Its
// parts are told apart by how their entries begin.
//
// An entry is added once its row is written, and again when the same is written again,
// as it is after a crash. So no row lacks its entry for long. An entry whose row says
// otherwise is stale; the next reader removes it. It is kept with [waitQueueDoubt] before
// it until its row was read again, for a process may die in between. In a cluster,
// where the wait queue is of another slot, entries are added before the row as well.
const (
	keyWaitQueue     = "agenda" // the key in stored data; it never changes
	waitQueuePending = "p "     // a scope that may have episodes above a watermark
	waitQueueIdle    = "i "     // an open, live session, by when it was last seen at the time
	waitQueueDue     = "h "     // a hold, by when it is due
	waitQueueVectors = "v"      // a text to embed, by space; see vector_queue.go
	waitQueueDoubt   = "~"      // an entry that a reader found stale, but for texts to embed
)

func (l layout) waitQueue() string { return l.shared(keyWaitQueue) }

func (p place) pending() string { return waitQueuePending + orderOf(p.fact) }

func (p place) idle(session string, seen int64) string {
	return instantIn(waitQueueIdle, seen) + " " + orderOf(p.fact) + " " + levelTag(session)
}

func (p place) due(hold string, at int64) string {
	return instantIn(waitQueueDue, at) + " " + orderOf(p.fact) + " " + scope.Encode(hold)
}

// instantIn begins the entries of an instant, in microseconds.
func instantIn(part string, at int64) string { return fmt.Sprintf("%s%016d", part, max(at, 0)) }

// parseListed splits an entry of a session or a hold after its instant. It is ours, so
// an error means that the store is damaged.
func (o owners) parseListed(entry string) (fact scope.Scope, id string, err error) {
	part := strings.Split(entry, " ")
	if len(part) != 5 {
		return fact, "", fmt.Errorf("redis: %w: wait queue entry %q", store.ErrDamaged, entry)
	}
	if fact, err = o.of(part[2] + " " + part[3]); err == nil {
		id, err = scope.Decode(part[4])
	}
	return fact, id, err
}

// list adds entries.
func (s *Store) list(ctx context.Context, t *tenure, entries ...string) error {
	for part := range slices.Chunk(entries, maxEntries) {
		if _, err := s.call(ctx, append([]any{"ZADD", t.waitQueue()}, members(part)...)...); err != nil {
			return fmt.Errorf("add to the wait queue: %w", err)
		}
	}
	return nil
}

// unlist takes entries out.
func (s *Store) unlist(ctx context.Context, t *tenure, entries ...string) error {
	for part := range slices.Chunk(entries, maxEntries) {
		if _, err := s.call(ctx, with(part, "ZREM", t.waitQueue())...); err != nil {
			return fmt.Errorf("take out of the wait queue: %w", err)
		}
	}
	return nil
}

// members are entries as ZADD takes them.
func members(entries []string) []any {
	args := make([]any, 0, 2*len(entries))
	for _, e := range entries {
		args = append(args, 0, e)
	}
	return args
}

// upTo are the entries of a part before an instant.
func upTo(part string, at int64) entries { return entries{"[" + part, "(" + instantIn(part, at)} }

// eachListed calls yield with the rows of a part, in its order, until that returns
// false. read returns for each entry the one under which its row belongs, empty for
// none, and what to yield of it. Only rows whose entries are right are yielded.
func eachListed[T any](ctx context.Context, s *Store, part entries, read func([]string) ([]string, []T, error), yield func(T) bool) error {
	t := s.tenure()
	if err := s.listDoubted(ctx, t, part); err != nil {
		return err
	}
	for {
		reply, err := s.call(ctx, "ZRANGE", t.waitQueue(), part.min, part.max, "BYLEX", "LIMIT", 0, pageSize)
		list := texts(reply)
		if err != nil || len(list) == 0 {
			return err
		}
		right, rows, err := read(list)
		if err != nil {
			return err
		}
		var stale []string
		for i, e := range list {
			if right[i] != e {
				stale = append(stale, e)
			}
		}
		if err := s.relist(ctx, t, stale, func() (right []string, err error) {
			right, _, err = read(stale)
			return right, err
		}); err != nil {
			return err
		}
		for i, e := range list {
			if right[i] == e && !yield(rows[i]) {
				return nil
			}
		}
		if len(list) < pageSize {
			return nil
		}
		part.min = "(" + list[len(list)-1]
	}
}

// relist takes stale entries out, and adds those under which their rows belong. These
// are read afterwards: a writer may have added its entry just before it was taken out.
func (s *Store) relist(ctx context.Context, t *tenure, stale []string, read func() ([]string, error)) error {
	if len(stale) == 0 {
		return nil
	}
	doubted, err := s.doubt(ctx, t, stale)
	if err != nil {
		return err
	}
	right, err := read()
	if err != nil {
		return err
	}
	if err := s.list(ctx, t, slices.DeleteFunc(right, func(e string) bool { return e == "" })...); err != nil {
		return err
	}
	return s.unlist(ctx, t, doubted...)
}

// doubt puts entries in doubt, in one step: another reader that lists them again meanwhile
// must not do so before they are out. The name of the reader keeps others from taking
// out what it doubts.
func (s *Store) doubt(ctx context.Context, t *tenure, stale []string) (doubted []string, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	reader, pipe := rand.Text(), s.client.TxPipeline()
	for part := range slices.Chunk(stale, maxEntries) {
		in, out := []any{"ZADD", t.waitQueue()}, []any{"ZREM", t.waitQueue()}
		for _, e := range part {
			doubted = append(doubted, waitQueueDoubt+e+" "+reader)
			in, out = append(in, 0, doubted[len(doubted)-1]), append(out, e)
		}
		_ = pipe.Process(ctx, command(ctx, in)) // each has its error with the transaction
		_ = pipe.Process(ctx, command(ctx, out))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("put in doubt: %w", explain(err))
	}
	return doubted, nil
}

// listDoubted adds the entries of a part again whose reader died, or goes on still.
func (s *Store) listDoubted(ctx context.Context, t *tenure, part entries) error {
	reply, err := s.call(ctx, "ZRANGE", t.waitQueue(), part.min[:1]+waitQueueDoubt+part.min[1:], part.max[:1]+waitQueueDoubt+part.max[1:], "BYLEX")
	doubted := texts(reply)
	if err != nil || len(doubted) == 0 {
		return err
	}
	again := make([]string, len(doubted))
	for i, e := range doubted {
		again[i] = undoubted(e)
	}
	if err := s.list(ctx, t, again...); err != nil {
		return err
	}
	return s.unlist(ctx, t, doubted...)
}

// undoubted is an entry as it was before it was put in doubt.
func undoubted(entry string) string {
	if rest, doubted := strings.CutPrefix(entry, waitQueueDoubt); doubted {
		return rest[:max(0, strings.LastIndexByte(rest, ' '))]
	}
	return entry
}

// waitQueueRows are the fields from which the entries of rows are made, by kind.
var waitQueueRows = map[string][]string{kindState: {"okey"}, kindSession: lookedUp[kindSession], kindHold: lookedUp[kindHold]}

// listAgain adds the entries of all scopes, sessions and holds. In a cluster the node of
// the wait queue may have lost it, while the rows are on others and are not written again.
func (s *Store) listAgain(ctx context.Context) error {
	t := s.tenure()
	err := s.eachKey(ctx, t.layout, func(ctx context.Context, node goredis.Cmdable, keys []string) error {
		var kinds []string
		var rows []*goredis.SliceCmd
		reads := node.Pipeline()
		for _, key := range keys {
			_, member, _ := strings.Cut(key, "}:")
			kind, _, _ := strings.Cut(member, ":")
			if names := waitQueueRows[kind]; names != nil {
				kinds, rows = append(kinds, kind), append(rows, reads.HMGet(ctx, key, names...))
			}
		}
		if len(rows) == 0 {
			return nil
		}
		if _, err := reads.Exec(ctx); err != nil {
			return err
		}
		var list []string
		for i, row := range rows {
			some, err := s.waitQueueFrom(kinds[i], pick(waitQueueRows[kinds[i]], row.Val()), owners{})
			if err != nil {
				return err
			}
			list = append(list, some...)
		}
		return s.list(ctx, t, list...)
	})
	if err != nil {
		return fmt.Errorf("make the wait queue again: %w", err)
	}
	return nil
}

// enqueue adds entries of the batch to the wait queue. It takes effect with the batch, in a
// cluster after it.
func (b *batch) enqueue(entries ...string) { b.waitQueue = append(b.waitQueue, entries...) }

// putWaitQueue adds the commands that bring the wait queue up to date.
func (b *batch) putWaitQueue() {
	key := b.place.tenure.waitQueue()
	for part := range slices.Chunk(b.waitQueue, maxEntries) {
		b.do("ZADD", key, members(part)...)
	}
}

// putWaitQueueAfter does in a cluster what putWaitQueue does elsewhere.
func (s *Store) putWaitQueueAfter(ctx context.Context, b *batch) error {
	if !s.cluster() {
		return nil
	}
	return s.list(ctx, b.place.tenure, b.waitQueue...)
}

// listHolds adds the holds of an effect, also where it is applied again.
func (b *batch) listHolds(effect events.EffectCommitted) {
	for _, h := range effect.Holds {
		if h.Due != nil {
			b.enqueue(b.place.due(h.ID, store.CeilMicros(*h.Due)))
		}
	}
}
