package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

const selectEpisode = `SELECT s.project, s.user, s.agent, p.session, e.id, e.source, e.role, e.mode, e.ts, e.ts_offset,
  e.arrived, e.flags, e.seq, e.ordinal, e.node, e.correlation, e.prompt, e.metadata, e.content, e.trace, e.row
  FROM episodes e CROSS JOIN sessions p ON p.id = e.place_id CROSS JOIN scopes s ON s.id = e.scope_id`

func scanEpisode(row scanner) (memory.Episode, error) {
	e, _, err := scanEpisodeRow(row)
	return e, err
}

func scanEpisodeRow(row scanner) (e memory.Episode, id int64, err error) {
	var ts, arrived int64
	var offset, flags int
	var metadata, trace *string
	err = row.Scan(&e.Scope.Project, &e.Scope.User, &e.Scope.Agent, &e.Scope.Session, &e.ID, &e.Source, &e.Role, &e.Mode,
		&ts, &offset, &arrived, &flags, &e.Seq, &e.Ordinal, &e.SourceNode, &e.CorrelationID, &e.Prompt, &metadata, &e.Content, &trace, &id)
	if err != nil {
		return e, 0, err
	}
	e.Timestamp, e.ArrivedAt = store.InOffset(ts, offset), fromMicros(arrived)
	e.Clamped, e.Request, e.Verbatim = flags&flagClamped != 0, flags&flagRequest != 0, flags&flagVerbatim != 0
	if trace != nil {
		e.Traceparent = *trace
	}
	if metadata != nil {
		if err := json.Unmarshal([]byte(*metadata), &e.Metadata); err != nil {
			return e, 0, fmt.Errorf("metadata of episode %s: %w", e.ID, err)
		}
	}
	return e, id, nil
}

func (s *Store) episodes(ctx context.Context, where string, args ...any) ([]memory.Episode, error) {
	var list []memory.Episode
	err := s.reads.each(ctx, selectEpisode+where, args, func(row scanner) error {
		e, err := scanEpisode(row)
		list = append(list, e)
		return err
	})
	return list, err
}

// Episode implements [store.EpisodeReader]. The plus keeps SQLite from walking
// all episodes of the scope in order of their ordinals.
func (s *Store) Episode(ctx context.Context, full scope.Scope, source, id string) (memory.Episode, error) {
	scopeID, err := s.scopeID(ctx, full.Fact())
	if err != nil {
		return memory.Episode{}, err
	}
	list, err := s.episodes(ctx, ` WHERE e.scope_id = ?1 AND e.id = ?2 AND (?3 = '' OR e.source = ?3) AND p.session = ?4
	  ORDER BY +e.ordinal LIMIT 1`, scopeID, id, source, full.Session)
	if err != nil {
		return memory.Episode{}, err
	}
	if len(list) == 0 {
		return memory.Episode{}, store.ErrNotFound
	}
	return list[0], nil
}

// EpisodesByID implements [store.EpisodeReader].
func (s *Store) EpisodesByID(ctx context.Context, fact scope.Scope, ids []string) ([]memory.Episode, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return s.episodes(ctx, ` WHERE e.scope_id = ? AND e.id IN (SELECT value FROM json_each(?)) ORDER BY +e.ordinal`, scopeID, jsonList(ids))
}

// EpisodeRange implements [store.EpisodeReader].
func (s *Store) EpisodeRange(ctx context.Context, fact scope.Scope, r events.Range) ([]memory.Episode, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil || r.Empty() {
		return nil, err
	}
	return s.episodes(ctx, ` WHERE e.scope_id = ? AND e.ordinal > ? AND e.ordinal <= ? ORDER BY e.ordinal`,
		scopeID, clampOrdinal(r.From), clampOrdinal(r.To))
}

// EpisodesAt implements [store.OrdinalReader].
func (s *Store) EpisodesAt(ctx context.Context, fact scope.Scope, ordinals []uint64) ([]memory.Episode, error) {
	scopeID, err := s.scopeID(ctx, fact)
	if err != nil || len(ordinals) == 0 {
		return nil, err
	}
	return s.episodes(ctx, ` WHERE e.scope_id = ? AND e.ordinal IN (SELECT value FROM json_each(?)) ORDER BY +e.ordinal`, scopeID, jsonList(ordinals))
}

// EpisodesBefore implements [store.EpisodeReader].
func (s *Store) EpisodesBefore(ctx context.Context, session scope.Scope, ordinal uint64, n int) ([]memory.Episode, error) {
	scopeID, err := s.scopeID(ctx, session.Fact())
	if err != nil || n <= 0 {
		return nil, err
	}
	list, err := s.episodes(ctx, ` WHERE e.place_id = (SELECT id FROM sessions WHERE scope_id = ? AND session = ?)
	  AND e.ordinal < ? ORDER BY e.ordinal DESC`+atMost, scopeID, session.Session, clampOrdinal(ordinal), n)
	slices.Reverse(list)
	return list, err
}

// Recent implements [store.EpisodeReader].
func (s *Store) Recent(ctx context.Context, sel scope.Selector, q store.RecentQuery) ([]memory.Episode, error) {
	if err := checkLimit(q.Limit); err != nil {
		return nil, err
	}
	places, err := s.episodePlaces(ctx, sel)
	if err != nil {
		return nil, err
	}
	after, before := int64(math.MinInt64), int64(math.MaxInt64)
	if !q.After.IsZero() {
		after = micros(q.After)
	}
	if !q.Before.IsZero() {
		before = store.CeilMicros(q.Before)
	}
	if q.Cursor != nil {
		before = min(before, micros(q.Cursor.Timestamp)+1)
	}
	var list []memory.Episode
	for _, p := range places {
		column := "e.scope_id"
		id := p.scopeID
		if p.placeID != 0 {
			column, id = "e.place_id", p.placeID
		}
		list, err = s.recentOf(ctx, list, column, id, after, before, q)
		if err != nil {
			return nil, err
		}
		if len(list) >= 4*q.Limit {
			list = newest(list, q.Limit)
			// Ties with the last one kept may still come before it.
			after = max(after, micros(list[len(list)-1].Timestamp)-1)
		}
	}
	return newest(list, q.Limit), nil
}

// recentOf appends up to a page of one scope or session. Rows at the cursor's
// instant are sorted out here, so a page of nothing but those is followed by
// the next.
func (s *Store) recentOf(ctx context.Context, list []memory.Episode, column string, id, after, before int64, q store.RecentQuery) ([]memory.Episode, error) {
	upto := uint64(math.MaxInt64)
	if q.Cursor != nil && before == micros(q.Cursor.Timestamp)+1 {
		upto = q.Cursor.Ordinal
	}
	// Rows at the last instant are bounded by ordinal as well; within one scope
	// ordinals are unique, so at most one row is not behind the cursor.
	page, err := s.episodes(ctx, ` WHERE `+column+` = ? AND e.ts > ? AND e.ts < ? AND (e.ts < ? OR e.ordinal <= ?)
	  ORDER BY e.ts DESC, e.ordinal DESC LIMIT ?`, id, after, before, before-1, clampOrdinal(upto), q.Limit+1)
	for _, e := range page {
		if q.Cursor == nil || q.Cursor.Before(store.CursorOf(e)) {
			list = append(list, e)
		}
	}
	return list, err
}

func newest(list []memory.Episode, limit int) []memory.Episode {
	sort.Slice(list, func(i, j int) bool { return store.CursorOf(list[i]).Before(store.CursorOf(list[j])) })
	return list[:min(limit, len(list))]
}
