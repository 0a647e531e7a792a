package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// The texts to embed in a space are a part of the wait queue. An entry is the space, the
// partition of the row's scope, its project, the flag of the row, which is when it was
// flagged, and where it is. An entry whose row has another flag is stale. The flag is
// what counts: a row that is flagged and has no entry, because a process died between
// the two or an earlier version wrote it, is found by a search; see [Store.requeue].
func (sp space) queue() string { return waitQueueVectors + strconv.FormatUint(sp.ID, 10) + " " }

// queued is the entry of a row.
func (p place) queued(sp space, flag int64, member string) string {
	return fmt.Sprintf("%s%02d %s %016d %s %s", sp.queue(), p.fact.Partition(events.Partitions), scope.Encode(p.fact.Project), flag, p.tag, member)
}

// queuedRow is what an entry says.
type queuedRow struct {
	entry     string
	partition string
	flag      int64
	key       string
}

func (l layout) parseQueued(entry string) (r queuedRow, ok bool) {
	part := strings.SplitN(entry, " ", 6)
	if len(part) != 6 {
		return r, false
	}
	return queuedRow{entry, part[1], toInt(part[3]), l.root() + part[2] + ":{" + part[4] + "}:" + part[5]}, true
}

// takingTurns is where the next call that takes from the queue of a space goes on.
type takingTurns struct {
	mu   sync.Mutex
	last string
	// searched is when all rows without an entry were last searched for, and from the
	// flag from which the search goes on.
	searched time.Time
	from     int64
	// looked is when rows without a flag were last searched for, and pause how long
	// there is no need to do so again.
	looked time.Time
	pause  time.Duration
}

// again makes the next call search.
func (t *takingTurns) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.searched, t.pause = time.Time{}, 0
}

func (t *tenure) turnsOf(sp space) *takingTurns {
	turns, _ := t.turns.LoadOrStore(sp.ID, new(takingTurns))
	return turns.(*takingTurns) //nolint:forcetypeassert // all are
}

// searchEvery is how often rows without an entry are searched for.
const searchEvery = 5 * time.Minute

// PendingVectors implements [store.VectorWriter].
func (s *Store) PendingVectors(ctx context.Context, id uint64, limit int, partitions ...int) ([]store.PendingVector, error) {
	if limit < 1 {
		return nil, fmt.Errorf("redis: limit %d is not positive", limit)
	}
	t := s.tenure()
	sp, ok := t.spaces.Load().find(id)
	if !ok {
		return nil, nil
	}
	t.fresh.embeds.Store(true)
	turns := t.turnsOf(sp)
	turns.mu.Lock()
	defer turns.mu.Unlock()
	for {
		more, err := s.requeue(ctx, t, sp, turns)
		if err == nil && !more && sp.ID > 1 {
			more, err = s.queueUnseen(ctx, t, sp, turns)
		}
		if err != nil {
			return nil, fmt.Errorf("search for texts to embed: %w", err)
		}
		taken, stale, err := s.takeVectors(ctx, t, sp, turns, limit, partitionNames(partitions))
		if err != nil {
			return nil, fmt.Errorf("take texts to embed: %w", err)
		}
		list, err := s.readPending(ctx, t, sp, taken, stale)
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
func (s *Store) takeVectors(ctx context.Context, t *tenure, sp space, turns *takingTurns, limit int, partitions []any) (rows []queuedRow, stale []string, err error) {
	queue := startingWith(sp.queue())
	reply, err := s.call(ctx, "ZRANGE", t.waitQueue(), queue.min, queue.max, "BYLEX", "LIMIT", 0, limit)
	if err != nil {
		return nil, nil, err
	}
	entries := texts(reply)
	if len(entries) == limit {
		reply, err := s.run(ctx, takeVectorsScript, []string{t.waitQueue()}, append([]any{limit, sp.queue(), turns.last}, partitions...)...)
		if err != nil {
			return nil, nil, err
		}
		entries = texts(reply)
		turns.last, entries = entries[0], entries[1:]
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

// pendingFields are what a pending text is read from; the first is the flag.
var pendingFields = []string{"q", "k", "b", "c", "okey"}

func (r queuedRow) read(sp space) []any { return with(pendingFields[1:], "HMGET", r.key, sp.flag()) }

// readPending reads what entries name, but for what this process has written itself,
// and takes stale ones out of the queue.
func (s *Store) readPending(ctx context.Context, t *tenure, sp space, rows []queuedRow, stale []string) (list []store.PendingVector, err error) {
	fresh := map[string]store.PendingVector{}
	var commands [][]any
	for _, r := range rows {
		if v, ok := t.fresh.Take(r.entry); ok {
			fresh[r.entry] = v
		} else {
			commands = append(commands, r.read(sp))
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
			if f["k"] == "" || sp.flagOf(f["q"]) != r.flag {
				stale = append(stale, r.entry)
				continue
			}
			if v, err = pendingVector(f, known); err != nil {
				return nil, err
			}
		}
		v.Ref.Space = sp.ID
		list = append(list, v)
	}
	return list, s.unlist(ctx, t, stale...)
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

// requeue searches for rows that are flagged, a page of them in each call, and gives
// each an entry that has none. It does so at the begin of a tenure and now and then.
// more says that it has not seen all.
func (s *Store) requeue(ctx context.Context, t *tenure, sp space, turns *takingTurns) (more bool, err error) {
	now := s.cfg.Now()
	if since := now.Sub(turns.searched); turns.from == 0 && since >= 0 && since < searchEvery {
		return false, nil
	}
	q := of(kindFact, kindEpisode).atLeast(sp.flag(), max(1, turns.from))
	a, err := s.search(ctx, s.searchArgs(q, pageSize, append([]any{"SORTBY", sp.flag(), "ASC"}, returning(sp.flag(), "okey")...)...))
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
		last = toInt(row.get(sp.flag()))
		entries[i] = p.queued(sp, last, strings.TrimPrefix(string(row.key), p.base))
	}
	if err := s.list(ctx, t, entries...); err != nil {
		return false, err
	}
	if more = len(entries) == pageSize; !more {
		turns.searched, turns.from = now, 0
		return false, nil
	}
	if last == turns.from {
		last++ // a page of one flag
	}
	turns.from = last
	return true, nil
}

// queueUnseen gives entries to rows that have no flag in a space, and a flag to those
// without a text to embed. It searches once the queue is empty: as long as it finds
// any, and less and less often once it finds none, since writers may not have heard of
// the space yet. more says that there may be more although there is no entry.
func (s *Store) queueUnseen(ctx context.Context, t *tenure, sp space, turns *takingTurns) (more bool, err error) {
	now := s.cfg.Now()
	if since := now.Sub(turns.looked); since >= 0 && since < turns.pause {
		return false, nil
	}
	queue := startingWith(sp.queue())
	queued, err := s.call(ctx, "ZRANGE", t.waitQueue(), queue.min, queue.max, "BYLEX", "LIMIT", 0, 1)
	if err != nil || len(texts(queued)) > 0 {
		return false, err
	}
	q := of(kindFact, kindEpisode).clause("-@" + sp.flag() + ":[-inf +inf]")
	a, err := s.search(ctx, s.searchArgs(q, pageSize, returning("okey", "k", "b")...))
	if err != nil {
		return false, err
	}
	known := owners{}
	var entries []string
	var secrets [][]any
	for _, row := range a.rows {
		fact, err := known.of(row.get("okey"))
		if err != nil {
			return false, err
		}
		if secret, err := isIncognito(row); err != nil {
			return false, err
		} else if secret {
			secrets = append(secrets, []any{"HSET", string(row.key), sp.flag(), incognito})
			continue
		}
		p := t.place(fact)
		entries = append(entries, p.queued(sp, unseen, strings.TrimPrefix(string(row.key), p.base)))
	}
	if _, err := s.pipe(ctx, secrets); err != nil {
		return false, err
	}
	if turns.looked = now; len(a.rows) > 0 {
		turns.pause = 0
	} else {
		turns.pause = min(max(2*turns.pause, s.cfg.Pulse), searchEvery)
	}
	return len(secrets) > 0 && len(entries) == 0, s.list(ctx, t, entries...)
}

// isIncognito reports whether a row of a search is an episode that is never embedded.
func isIncognito(row found) (bool, error) {
	if row.get("k") != kindEpisode {
		return false, nil
	}
	var b struct {
		Mode events.Mode `json:"mode"`
	}
	err := decode("episode", row.view("b"), &b)
	return b.Mode == events.ModeIncognito, err
}

// RefusedVectors implements [store.VectorWriter].
func (s *Store) RefusedVectors(ctx context.Context, limit int) ([]store.RefusedVector, error) {
	sp := s.tenure().spaces.Load().served()
	q := of(kindFact, kindEpisode).between(sp.flag(), number(refused), number(refused))
	a, err := s.search(ctx, s.searchArgs(q, limit, returning("k", "b", "c", "okey", sp.why())...))
	if err != nil {
		return nil, err
	}
	list, known := make([]store.RefusedVector, len(a.rows)), owners{}
	for i, row := range a.rows {
		v, err := pendingVector(row, known)
		if err != nil {
			return nil, err
		}
		list[i] = store.RefusedVector{Ref: v.Ref, Reason: row.get(sp.why())}
	}
	return list, nil
}
