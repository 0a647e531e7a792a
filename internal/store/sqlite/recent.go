package sqlite

import (
	"context"
	"math"
	"sort"
	"strings"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// Recent implements [store.EpisodeReader].
func (s *Store) Recent(ctx context.Context, sel scope.Selector, q store.RecentQuery) ([]memory.Episode, error) {
	if err := store.CheckLimit(q.Limit); err != nil {
		return nil, err
	}
	places, err := s.episodePlaces(ctx, sel)
	if err != nil {
		return nil, err
	}
	r := stretchOf(q)
	var list []memory.Episode
	for _, p := range places {
		column := "e.scope_id"
		id := p.scopeID
		if p.placeID != 0 {
			column, id = "e.place_id", p.placeID
		}
		list, err = s.recentOf(ctx, list, column, id, r, q)
		if err != nil {
			return nil, err
		}
		if len(list) >= 4*q.Limit {
			list = firstOf(list, q)
			r.end(micros(list[len(list)-1].Timestamp), q.Oldest)
		}
	}
	return firstOf(list, q), nil
}

// stretch is where a read looks, between two instants, both exclusive.
type stretch struct{ after, before int64 }

func stretchOf(q store.RecentQuery) stretch {
	r := stretch{math.MinInt64, math.MaxInt64}
	if !q.After.IsZero() {
		r.after = micros(q.After)
	}
	if !q.Before.IsZero() {
		r.before = store.CeilMicros(q.Before)
	}
	if q.Cursor != nil {
		r.end(micros(q.Cursor.Timestamp), !q.Oldest)
	}
	return r
}

// end bounds r by an instant from above or from below. The instant itself stays
// within, because other rows of the same instant may belong to r.
func (r *stretch) end(at int64, above bool) {
	if above {
		r.before = min(r.before, at+1)
	} else {
		r.after = max(r.after, at-1)
	}
}

const newestFirst = ` = ? AND e.ts > ? AND e.ts < ? AND (e.ts < ? OR e.ordinal <= ?)#
  ORDER BY e.ts DESC, e.ordinal DESC LIMIT ?`

const oldestFirst = ` = ? AND e.ts > ? AND e.ts < ? AND (e.ts > ? OR e.ordinal >= ?)#
  ORDER BY e.ts, e.ordinal LIMIT ?`

// recentOf appends up to a page of one scope or session. Rows at the cursor's
// instant are bounded by ordinal as well; within one scope ordinals are unique, so
// at most one row is not behind the cursor. It reads on while rows do not match.
func (s *Store) recentOf(ctx context.Context, list []memory.Episode, column string, id int64, r stretch, q store.RecentQuery) ([]memory.Episode, error) {
	order := newestFirst
	if q.Oldest {
		order = oldestFirst
	}
	narrow, narrowArgs := episodeColumns.narrow("", nil, q.Filter)
	order = strings.Replace(order, "#", narrow, 1)
	for enough := len(list) + q.Limit; ; {
		edge, ordinal := r.before-1, uint64(math.MaxInt64)
		if q.Oldest {
			edge, ordinal = r.after+1, 0
		}
		if q.Cursor != nil && edge == micros(q.Cursor.Timestamp) {
			ordinal = q.Cursor.Ordinal
		}
		args := append([]any{id, r.after, r.before, edge, clampOrdinal(ordinal)}, narrowArgs...)
		page, err := s.episodes(ctx, ` WHERE `+column+order, append(args, q.Limit+1)...)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			if (q.Cursor == nil || q.Precedes(*q.Cursor, store.CursorOf(e))) && q.Filter.KeepsEpisode(&e) {
				list = append(list, e)
			}
		}
		if q.Filter == nil || len(page) <= q.Limit || len(list) >= enough {
			return list, nil
		}
		last := store.CursorOf(page[len(page)-1])
		q.Cursor = &last
		r.end(micros(last.Timestamp), !q.Oldest)
	}
}

func firstOf(list []memory.Episode, q store.RecentQuery) []memory.Episode {
	sort.Slice(list, func(i, j int) bool { return q.Precedes(store.CursorOf(list[i]), store.CursorOf(list[j])) })
	return list[:min(q.Limit, len(list))]
}
