package sqlite

import (
	"context"
	"maps"
	"slices"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
)

// rowKey names a row that a search can find.
type rowKey struct {
	target store.Target
	row    int64
}

func (k rowKey) changes() int64 { return k.row }

// takeHits reads the best candidates that pass the query's filters, until there
// are enough or no more.
func (s *Store) takeHits(ctx context.Context, f finder, rank ranker) ([]store.Hit, error) {
	hits := make([]store.Hit, 0, min(f.limit, 64))
	after := unbeaten
	for n := f.limit; len(hits) < f.limit; n *= 4 {
		list := rank(n, after)
		for chunk := range slices.Chunk(list, maxRowsRead) {
			read, err := s.readHits(ctx, f, chunk)
			if err != nil {
				return nil, err
			}
			hits = append(hits, read[:min(len(read), f.limit-len(hits))]...)
		}
		if len(list) < n {
			break
		}
		after = list[n-1]
	}
	return hits, nil
}

// maxRowsRead bounds the rows that one statement reads.
const maxRowsRead = 4096

// readHits reads those of list that pass, in their order.
func (s *Store) readHits(ctx context.Context, f finder, list []candidate) ([]store.Hit, error) {
	keys := make([]rowKey, len(list))
	for i, c := range list {
		keys[i] = rowKey{f.target, c.row}
	}
	hits := make([]store.Hit, len(list))
	known := make([]bool, len(list))
	marks := s.rows.get(keys, func(i int, hit store.Hit) {
		if known[i] = true; f.pass(hit) {
			hits[i] = cloneHit(hit)
		}
	})
	missing := map[int64]int{}
	for i, c := range list {
		hits[i].Score = c.score
		if !known[i] {
			missing[c.row] = i
		}
	}
	if len(missing) > 0 {
		rows := slices.Collect(maps.Keys(missing))
		err := f.read(ctx, s.reads, rows, func(row int64, hit store.Hit) {
			i := missing[row]
			s.rows.put(keys[i], hit, hitBytes(hit), &marks)
			if !f.pass(hit) {
				return // SQL expresses less of the filter
			}
			hit = cloneHit(hit)
			hit.Score = list[i].score
			hits[i] = hit
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(hits, func(h store.Hit) bool { return h.Fact == nil && h.Episode == nil }), nil
}

// unshelve makes sure that no row is served as it was before the commit.
func (w *writer) unshelve(target store.Target, row int64) {
	w.then(func() {
		if w.store.rows.change(row) {
			w.store.rows.edit([]rowKey{{target, row}}, func(int, store.Hit) (hit store.Hit, size int64, keep bool) { return })
		}
	})
}

// finder is what a search asks of the rows it finds, in SQL for those that are
// read and in Go for those that are in memory.
type finder struct {
	table
	limit int
	pass  func(store.Hit) bool
	read  func(ctx context.Context, from querier, rows []int64, found func(row int64, hit store.Hit)) error
}

const amongRows = `.row IN (SELECT value FROM json_each(?))`

func findFacts(q store.SearchQuery) finder {
	narrow, args := narrowFacts(factFilter{
		session: q.Session, kinds: q.Kinds, validAt: q.ValidAt, after: q.After, before: q.Before, matching: q.Filter,
	})
	return finder{factTable, q.Limit, func(hit store.Hit) bool {
		f := hit.Fact
		return f.ArchivedAt == nil &&
			(q.Session == nil || slices.Contains(f.SessionIDs, *q.Session)) &&
			(len(q.Kinds) == 0 || slices.Contains(q.Kinds, f.Kind)) &&
			(q.ValidAt.IsZero() || memory.ValidAt(f.Fact, q.ValidAt)) &&
			within(f.EventTime, q) && q.Filter.KeepsFact(f)
	}, func(ctx context.Context, from querier, rows []int64, found func(int64, store.Hit)) error {
		return from.each(ctx, selectFact+` WHERE f`+amongRows+narrow, append([]any{jsonList(rows)}, args...), func(row scanner) error {
			f, id, err := scanFact(row)
			if err == nil {
				found(id, store.Hit{Fact: &f})
			}
			return err
		})
	}}
}

func findEpisodes(q store.SearchQuery) finder {
	narrow, args := narrowEpisodes(q.Session, q.After, q.Before, q.Filter)
	return finder{episodeTable, q.Limit, func(hit store.Hit) bool {
		e := hit.Episode
		return (q.Session == nil || e.Scope.Session == *q.Session) && within(e.Timestamp, q) && q.Filter.KeepsEpisode(e)
	}, func(ctx context.Context, from querier, rows []int64, found func(int64, store.Hit)) error {
		return from.each(ctx, selectEpisode+` WHERE e`+amongRows+narrow, append([]any{jsonList(rows)}, args...), func(row scanner) error {
			e, id, err := scanEpisodeRow(row)
			if err == nil {
				found(id, store.Hit{Episode: &e})
			}
			return err
		})
	}}
}

func within(t time.Time, q store.SearchQuery) bool {
	return (q.After.IsZero() || t.After(q.After)) && (q.Before.IsZero() || t.Before(q.Before))
}

// cloneHit copies a hit, so that callers may change what they got.
func cloneHit(hit store.Hit) store.Hit {
	if e := hit.Episode; e != nil {
		c := *e
		c.Metadata = cloneMap(c.Metadata)
		hit.Episode = &c
	}
	if f := hit.Fact; f != nil {
		c := *f
		for _, list := range []*[]string{&c.SessionIDs, &c.SourceEpisodeIDs, &c.Supersedes, &c.EntityIDs} {
			*list = slices.Clone(*list)
		}
		for _, t := range []**time.Time{&c.ValidUntil, &c.ArchivedAt} {
			if *t != nil {
				instant := **t
				*t = &instant
			}
		}
		c.Metadata = cloneMap(c.Metadata)
		hit.Fact = &c
	}
	return hit
}

func cloneMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	c := make(map[string]any, len(m))
	for k, v := range m {
		c[k] = cloneValue(v)
	}
	return c
}

// cloneValue copies a decoded JSON value.
func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return cloneMap(v)
	case []any:
		c := make([]any, len(v))
		for i := range v {
			c[i] = cloneValue(v[i])
		}
		return c
	}
	return v
}

// hitBytes is about what a hit takes in memory.
func hitBytes(hit store.Hit) int64 {
	if e := hit.Episode; e != nil {
		return int64(512 + len(e.Content) + len(e.Prompt) + valueBytes(e.Metadata))
	}
	f := hit.Fact
	size := 1024 + 2*len(f.Text) + len(f.EvidenceQuote) + valueBytes(f.Metadata)
	for _, list := range [][]string{f.SessionIDs, f.SourceEpisodeIDs, f.Supersedes, f.EntityIDs} {
		for _, id := range list {
			size += 16 + len(id)
		}
	}
	return int64(size)
}

func valueBytes(v any) int {
	size := 16
	switch v := v.(type) {
	case map[string]any:
		for k, v := range v {
			size += 32 + len(k) + valueBytes(v)
		}
	case []any:
		for _, v := range v {
			size += valueBytes(v)
		}
	case string:
		size += len(v)
	}
	return size
}
