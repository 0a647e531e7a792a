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

// takingTurns is where the next call that takes from the queue goes on.
type takingTurns struct {
	mu   sync.Mutex
	last string
	// searched is when all rows without an entry were last searched for, and from the
	// flag from which the search goes on.
	searched time.Time
	from     int64
}

// searchEvery is how often rows without an entry are searched for.
const searchEvery = 5 * time.Minute

// PendingVectors implements [store.VectorWriter].
func (s *Store) PendingVectors(ctx context.Context, _ uint64, limit int, partitions ...int) ([]store.PendingVector, error) {
	if limit < 1 {
		return nil, fmt.Errorf("redis: limit %d is not positive", limit)
	}
	t := s.tenure()
	t.fresh.begin()
	t.turns.mu.Lock()
	defer t.turns.mu.Unlock()
	for {
		more, err := s.requeue(ctx, t)
		if err != nil {
			return nil, fmt.Errorf("search for texts to embed: %w", err)
		}
		taken, stale, err := s.takeVectors(ctx, t, limit, partitionNames(partitions))
		if err != nil {
			return nil, fmt.Errorf("take texts to embed: %w", err)
		}
		list, err := s.readPending(ctx, t, taken, stale)
		if len(list) > 0 || len(taken)+len(stale) == 0 && !more || err != nil {
			return list, err
		}
	}
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

// takeVectors lists entries of partitions, and entries that say nothing. A queue that
// is shorter than the limit is read as a whole.
func (s *Store) takeVectors(ctx context.Context, t *tenure, limit int, partitions []any) (rows []queuedRow, stale []string, err error) {
	reply, err := s.call(ctx, "ZRANGE", t.vectorQueue(), "-", "+", "BYLEX", "LIMIT", 0, limit)
	if err != nil {
		return nil, nil, err
	}
	entries := texts(reply)
	if len(entries) == limit {
		reply, err := s.run(ctx, takeVectorsScript, []string{t.vectorQueue()}, append([]any{limit, t.turns.last}, partitions...)...)
		if err != nil {
			return nil, nil, err
		}
		entries = texts(reply)
		t.turns.last, entries = entries[0], entries[1:]
	}
	for _, entry := range entries {
		switch r, ok := t.parseQueued(entry); {
		case !ok:
			stale = append(stale, entry)
		case slices.Contains(partitions, any(r.partition)):
			rows = append(rows, r)
		}
	}
	return rows, stale, nil
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
func (s *Store) readPending(ctx context.Context, t *tenure, rows []queuedRow, stale []string) (list []store.PendingVector, err error) {
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

// requeue searches for rows that are flagged, a page of them in each call, and gives
// each an entry that has none. It does so at the begin of a tenure and now and then.
// more says that it has not seen all.
func (s *Store) requeue(ctx context.Context, t *tenure) (more bool, err error) {
	now := s.cfg.Now()
	if since := now.Sub(t.turns.searched); t.turns.from == 0 && since >= 0 && since < searchEvery {
		return false, nil
	}
	q := of(kindFact, kindEpisode).atLeast("q", max(1, t.turns.from))
	a, err := s.search(ctx, s.searchArgs(q, pageSize, append([]any{"SORTBY", "q", "ASC"}, returning("q", "okey")...)...))
	if err != nil {
		return false, err
	}
	entries, known, last := make([]string, len(a.rows)), owners{}, int64(0)
	for i, row := range a.rows {
		fact, err := known.of(row.get("okey"))
		if err != nil {
			return false, err
		}
		p := t.place(fact)
		last = toInt(row.get("q"))
		entries[i] = p.queued(last, strings.TrimPrefix(string(row.key), p.base))
	}
	if err := s.enqueue(ctx, t, entries); err != nil {
		return false, err
	}
	if more = len(entries) == pageSize; !more {
		t.turns.searched, t.turns.from = now, 0
		return false, nil
	}
	if last == t.turns.from {
		last++ // a page of one flag
	}
	t.turns.from = last
	return true, nil
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
