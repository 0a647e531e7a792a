package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The queue of texts to embed is a sorted set of one slot, ordered by member alone.
// An entry is the partition of the row's scope, its project, the flag of the row,
// which is when it was flagged, and where it is. An entry whose row has another flag
// is stale. The flag is what counts: a row that is flagged and has no entry, because
// a process died between the two or an earlier version wrote it, is found by a
// search; see [Store.requeue].
const keyVectors = "vectors"

func (l layout) vectorQueue() string { return l.shared(keyVectors) }

// queued is the entry of a row.
func (p place) queued(flag int64, member string) string {
	return fmt.Sprintf("%02d %s %016d %s %s", p.fact.Partition(events.Partitions), scope.Encode(p.fact.Project), flag, p.tag, member)
}

// queuedRow is what an entry says.
type queuedRow struct {
	entry     string
	partition string
	flag      int64
	key       string
}

func (l layout) parseQueued(entry string) (r queuedRow, ok bool) {
	part := strings.SplitN(entry, " ", 5)
	if len(part) != 5 {
		return r, false
	}
	return queuedRow{entry, part[0], toInt(part[2]), l.root() + part[1] + ":{" + part[3] + "}:" + part[4]}, true
}

// takingTurns is where the next call that takes from the queue goes on, and when rows
// without an entry were last searched for.
type takingTurns struct {
	mu       sync.Mutex
	last     string
	searched time.Time
}

// searchEvery is how often rows without an entry are searched for while the queue is
// empty.
const searchEvery = 5 * time.Minute

// maxTakes bounds how often one call looks into the queue, which may hold nothing but
// stale entries.
const maxTakes = 8

// PendingVectors implements [store.VectorWriter].
func (s *Store) PendingVectors(ctx context.Context, _ uint64, limit int, partitions ...int) ([]store.PendingVector, error) {
	if limit < 1 {
		return nil, fmt.Errorf("redis: limit %d is not positive", limit)
	}
	t := s.tenure()
	t.fresh.begin()
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	for range maxTakes {
		taken, all, err := s.takeVectors(ctx, t, limit, partitionNames(partitions))
		if err != nil {
			return nil, fmt.Errorf("take texts to embed: %w", err)
		}
		if all == 0 {
			if found, err := s.requeue(ctx, t); found == 0 || err != nil {
				return nil, err
			}
			continue
		}
		list, err := s.readPending(ctx, t, taken)
		if len(list) > 0 || len(taken) == 0 || err != nil {
			return list, err
		}
	}
	return nil, nil
}

func partitionNames(partitions []int) []any {
	if len(partitions) == 0 {
		for p := range events.Partitions {
			partitions = append(partitions, p)
		}
	}
	names := make([]any, len(partitions))
	for i, p := range partitions {
		names[i] = fmt.Sprintf("%02d", p)
	}
	return names
}

// takeVectors lists entries of partitions, and says how many of any it has seen. A
// queue that is shorter than the limit is read as a whole.
func (s *Store) takeVectors(ctx context.Context, t *tenure, limit int, partitions []any) (rows []queuedRow, all int, err error) {
	reply, err := s.call(ctx, "ZRANGE", t.vectorQueue(), "-", "+", "BYLEX", "LIMIT", 0, limit)
	if err != nil {
		return nil, 0, err
	}
	entries := texts(reply)
	all = len(entries)
	if all == limit {
		reply, err := s.run(ctx, takeVectorsScript, []string{t.vectorQueue()}, append([]any{limit, t.turns.last}, partitions...)...)
		if err != nil {
			return nil, 0, err
		}
		entries = texts(reply)
		t.turns.last, entries = entries[0], entries[1:]
	}
	for _, entry := range entries {
		if r, ok := t.parseQueued(entry); ok && slices.Contains(partitions, any(r.partition)) {
			rows = append(rows, r)
		}
	}
	return rows, all, nil
}

// pendingFields are what a pending text is read from.
var pendingFields = []string{"q", "k", "b", "c", "okey"}

func (r queuedRow) read() []any {
	command := []any{"HMGET", r.key}
	for _, f := range pendingFields {
		command = append(command, f)
	}
	return command
}

// readPending reads what entries name, but for what this process has written itself,
// and takes stale ones out of the queue.
func (s *Store) readPending(ctx context.Context, t *tenure, rows []queuedRow) (list []store.PendingVector, err error) {
	fresh := t.fresh.take(rows)
	var commands [][]any
	for _, r := range rows {
		if _, ok := fresh[r.entry]; !ok {
			commands = append(commands, r.read())
		}
	}
	replies, err := s.pipe(ctx, commands)
	if err != nil {
		return nil, err
	}
	var stale []string
	known := owners{}
	for _, r := range rows {
		v, ok := fresh[r.entry]
		if !ok {
			f := pick(pendingFields, replies[0])
			replies = replies[1:]
			if toInt(f["q"]) != r.flag {
				stale = append(stale, r.entry)
				continue
			}
			if v, err = pendingVector(f, known); err != nil {
				return nil, err
			}
		}
		list = append(list, v)
	}
	return list, s.dequeue(ctx, t, stale)
}

func pendingVector(r record, known owners) (v store.PendingVector, err error) {
	if r.get("k") == kindEpisode {
		e, err := parseEpisode(r)
		return pendingEpisode(e), err
	}
	fact, err := known.of(r.get("okey"))
	if err != nil {
		return v, err
	}
	f, err := parseFact(fact, r)
	return store.PendingVector{Ref: store.VectorRef{Target: store.Facts, Scope: fact, ID: f.ID, Revision: f.Revision}, Text: f.Text}, err
}

func pendingEpisode(e memory.Episode) store.PendingVector {
	return store.PendingVector{Ref: store.VectorRef{Target: store.Episodes, Scope: e.Scope, ID: e.ID, Source: e.Source}, Text: e.Content}
}

// enqueue adds entries of rows that are flagged.
func (s *Store) enqueue(ctx context.Context, t *tenure, entries []string) error {
	for part := range slices.Chunk(entries, maxEntries) {
		if _, err := s.call(ctx, append([]any{"ZADD", t.vectorQueue()}, members(part)...)...); err != nil {
			return fmt.Errorf("queue texts to embed: %w", err)
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

// dequeue removes entries whose rows are not flagged any more.
func (s *Store) dequeue(ctx context.Context, t *tenure, entries []string) error {
	for part := range slices.Chunk(entries, maxEntries) {
		args := []any{"ZREM", t.vectorQueue()}
		for _, e := range part {
			args = append(args, e)
		}
		if _, err := s.call(ctx, args...); err != nil {
			return fmt.Errorf("take embedded texts out of the queue: %w", err)
		}
	}
	return nil
}

// requeue searches for rows that are flagged and have no entry, gives them one, and
// returns how many there were. It does so at the begin of a tenure and now and then.
func (s *Store) requeue(ctx context.Context, t *tenure) (int, error) {
	now := s.cfg.Now()
	if since := now.Sub(t.turns.searched); since >= 0 && since < searchEvery {
		return 0, nil
	}
	q := of(kindFact, kindEpisode).atLeast("q", 1)
	a, err := s.search(ctx, s.searchArgs(q, pageSize, append([]any{"SORTBY", "q", "ASC"}, returning("q", "okey")...)...))
	if err != nil {
		return 0, err
	}
	entries, known := make([]string, len(a.rows)), owners{}
	for i, row := range a.rows {
		fact, err := known.of(row.get("okey"))
		if err != nil {
			return 0, err
		}
		p := t.place(fact)
		entries[i] = p.queued(toInt(row.get("q")), strings.TrimPrefix(string(row.key), p.base))
	}
	if len(entries) < pageSize {
		t.turns.searched = now
	}
	return len(entries), s.enqueue(ctx, t, entries)
}

// RefusedVectors implements [store.VectorWriter].
func (s *Store) RefusedVectors(ctx context.Context, limit int) ([]store.RefusedVector, error) {
	q := of(kindFact, kindEpisode).between("q", "-1", "-1")
	a, err := s.search(ctx, s.searchArgs(q, limit, returning("k", "b", "c", "okey", "why")...))
	if err != nil {
		return nil, err
	}
	list, known := make([]store.RefusedVector, len(a.rows)), owners{}
	for i, row := range a.rows {
		v, err := pendingVector(row, known)
		if err != nil {
			return nil, err
		}
		list[i] = store.RefusedVector{Ref: v.Ref, Reason: row.get("why")}
	}
	return list, nil
}
