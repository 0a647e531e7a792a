package redis

import (
	"context"
	"fmt"
	"slices"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/scope"
)

// Recent implements [store.EpisodeReader].
func (s *Store) Recent(ctx context.Context, sel scope.Selector, q store.RecentQuery) ([]memory.Episode, error) {
	if err := checkList(sel, q.Limit); err != nil {
		return nil, err
	}
	find := of(kindEpisode).within(s.layout(), sel)
	if !find.matching(indexedEpisodes, q.Filter) {
		return nil, nil
	}
	if !q.After.IsZero() {
		find.above("ts", micros(q.After))
	}
	if !q.Before.IsZero() {
		find.below("ts", store.CeilMicros(q.Before))
	}
	return store.ReadPages(q.Limit,
		func(last *memory.Episode) ([]memory.Episode, error) {
			if last != nil {
				at := store.CursorOf(*last)
				q.Cursor = &at
			}
			return s.episodePage(ctx, find, sel, q)
		},
		func(page []memory.Episode) ([]memory.Episode, error) { return q.Filter.Episodes(page), nil })
}

// episodePage reads episodes behind the cursor, whether they match or not.
func (s *Store) episodePage(ctx context.Context, all *query, sel scope.Selector, q store.RecentQuery) ([]memory.Episode, error) {
	find, filter := &query{clauses: slices.Clone(all.clauses), params: slices.Clone(all.params)}, ""
	if c := q.Cursor; c != nil {
		if _, err := scope.ParseKey(sel.Project, c.Key); err != nil && c.Key != "" {
			return nil, fmt.Errorf("redis: cursor: %w", err) // a canonical key holds no quote
		}
		filter = behindEpisode(find, q, sel.Project)
	}
	way := "DESC"
	if q.Oldest {
		way = "ASC"
	}
	order := []any{"@ts", way, "@ord", way, "@oid", way, "@okey", way}
	rows, err := s.page(ctx, find, filter, order, q.Limit, episodeColumns...)
	if err != nil {
		return nil, err
	}
	return parseEpisodes(rows)
}

// behindEpisode keeps what comes after the cursor in the order of q.
func behindEpisode(find *query, q store.RecentQuery, project string) string {
	c, less := q.Cursor, "<"
	if q.Oldest {
		less = ">"
		find.atLeast("ts", micros(c.Timestamp))
	} else {
		find.atMost("ts", micros(c.Timestamp))
	}
	id, key := ordered(c.ID), ordered(project)+" "+c.Key
	return fmt.Sprintf("@ts%[1]s%[2]d || @ord%[1]s%[3]d || (@ord==%[3]d && (@oid%[1]s'%[4]s' || (@oid=='%[4]s' && @okey%[1]s'%[5]s')))",
		less, micros(c.Timestamp), c.Ordinal, id, key)
}

// Sessions implements [store.EpisodeReader].
func (s *Store) Sessions(ctx context.Context, sel scope.Selector, q store.SessionQuery) ([]scope.Scope, error) {
	if err := checkList(sel, q.Limit); err != nil {
		return nil, err
	}
	way := "ASC"
	if q.Newest {
		way = "DESC"
	}
	steps := []any{"GROUPBY", 2, "@okey", "@x", "REDUCE", "MIN", 1, "@ts", "AS", "begun"}
	if !q.Before.IsZero() {
		steps = append(steps, "FILTER", fmt.Sprintf("@begun<%d", store.CeilMicros(q.Before)))
	}
	steps = append(steps, "SORTBY", 6, "@begun", way, "@okey", way, "@x", way, "MAX", q.Skip+q.Limit, "LIMIT", q.Skip, q.Limit)
	find := of(kindEpisode).within(s.layout(), sel)
	find.clause("-@x:{" + find.param(absentLevel) + "}")
	a, err := s.search(ctx, s.aggregateArgs(find, steps...))
	if err != nil {
		return nil, err
	}
	list := make([]scope.Scope, 0, len(a.rows))
	known := owners{}
	for _, row := range a.rows {
		full, err := known.session(row)
		if err != nil {
			return nil, err
		}
		list = append(list, full)
	}
	return list, nil
}
