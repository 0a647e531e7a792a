package redis

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

var episodeColumns = []any{"@b", "@c", "@ord"}

func parseEpisodes[R record](rows []R) ([]memory.Episode, error) {
	return parseAll(rows, func(e *memory.Episode, row R) (err error) {
		*e, err = parseEpisode(row)
		return err
	})
}

// episodesBy reads the episodes that parts of a scope's lookup name, at most limit of
// each part. Their rows do not change, so it takes no script to read them in one view.
func (s *Store) episodesBy(ctx context.Context, p place, reverse bool, limit int, parts ...entries) ([]memory.Episode, error) {
	asks := make([][]any, len(parts))
	for i, part := range parts {
		asks[i] = []any{"ZRANGE", p.lookup(), part.min, part.max, "BYLEX", "LIMIT", 0, limit}
		if reverse {
			asks[i] = []any{"ZRANGE", p.lookup(), part.max, part.min, "BYLEX", "REV", "LIMIT", 0, limit}
		}
	}
	replies, err := s.pipe(ctx, asks)
	if err != nil {
		return nil, err
	}
	var rows []fields
	var unread []int // indexes of rows
	var keys []string
	now := s.cfg.Now()
	for _, reply := range replies {
		for _, e := range texts(reply) {
			key := p.base + e[strings.LastIndexByte(e, ' ')+1:]
			row := p.tenure.said.of(key, now)
			if row == nil {
				unread = append(unread, len(rows))
				keys = append(keys, key)
			}
			rows = append(rows, row)
		}
	}
	read, err := s.rowsAt(ctx, keys, episodeFields)
	if err != nil {
		return nil, err
	}
	for i, row := range read {
		if rows[unread[i]] = row; !row.empty() {
			p.tenure.said.note(keys[i], row, now)
		}
	}
	return parseEpisodes(rows)
}

// Episode implements [store.EpisodeReader].
func (s *Store) Episode(ctx context.Context, full scope.Scope, source, id string) (memory.Episode, error) {
	if err := full.Validate(); err != nil {
		return memory.Episode{}, err
	}
	p := s.place(full.Fact())
	if source != "" {
		rows, err := s.rowsAt(ctx, []string{p.episode(full.Session, source, id)}, episodeFields)
		if err != nil {
			return memory.Episode{}, err
		}
		return store.Only(parseEpisodes(rows))
	}
	list, err := s.EpisodesByID(ctx, full.Fact(), []string{id})
	if err != nil {
		return memory.Episode{}, err
	}
	for _, e := range list {
		if e.Scope.Session == full.Session {
			return e, nil
		}
	}
	return memory.Episode{}, store.ErrNotFound
}

// EpisodesByID implements [store.EpisodeReader].
func (s *Store) EpisodesByID(ctx context.Context, fact scope.Scope, ids []string) ([]memory.Episode, error) {
	if err := fact.Validate(); err != nil || len(ids) == 0 {
		return nil, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	list, err := s.episodesBy(ctx, s.place(fact), false, everyHit, lookups(byID, tokens(ids))...)
	slices.SortFunc(list, func(a, b memory.Episode) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return list, err
}

// EpisodeRange implements [store.EpisodeReader].
func (s *Store) EpisodeRange(ctx context.Context, fact scope.Scope, r events.Range) ([]memory.Episode, error) {
	if err := fact.Validate(); err != nil || r.Empty() {
		return nil, err
	}
	return s.wholly(ctx, r.To-r.From, func(t *tenure) ([]memory.Episode, error) {
		in := entries{"(" + byOrdinal + ordinalText(r.From) + "\xff", "(" + byOrdinal + ordinalText(r.To) + "\xff"}
		return s.episodesBy(ctx, t.place(fact), false, everyHit, in)
	})
}

// EpisodesAt implements [store.OrdinalReader].
func (s *Store) EpisodesAt(ctx context.Context, fact scope.Scope, ordinals []uint64) ([]memory.Episode, error) {
	if err := fact.Validate(); err != nil || len(ordinals) == 0 {
		return nil, err
	}
	var parts []entries
	sorted := slices.Compact(slices.Sorted(slices.Values(ordinals)))
	for first := 0; first < len(sorted); {
		next := first + 1
		for next < len(sorted) && sorted[next] == sorted[next-1]+1 {
			next++
		}
		parts = append(parts, entries{"[" + byOrdinal + ordinalText(sorted[first]), "(" + byOrdinal + ordinalText(sorted[next-1]) + "\xff"})
		first = next
	}
	return s.episodesBy(ctx, s.place(fact), false, everyHit, parts...)
}

// wholly is a read whose answer is taken for all that was said. Where it gives
// less than could be there, it asks whether something was lost before or meanwhile.
func (s *Store) wholly(ctx context.Context, most uint64, read func(*tenure) ([]memory.Episode, error)) ([]memory.Episode, error) {
	return settled(func() ([]memory.Episode, error) {
		t := s.tenure()
		list, err := read(t)
		if err == nil && uint64(len(list)) < most {
			err = s.unbroken(ctx, t)
		}
		return list, err
	})
}

// EpisodesBefore implements [store.EpisodeReader].
func (s *Store) EpisodesBefore(ctx context.Context, session scope.Scope, ordinal uint64, n int) ([]memory.Episode, error) {
	if err := session.Validate(); err != nil || n <= 0 || ordinal <= 1 {
		return nil, err
	}
	list, err := s.wholly(ctx, min(uint64(n), ordinal-1), func(t *tenure) ([]memory.Episode, error) {
		of := bySession + token(session.Session) + " "
		return s.episodesBy(ctx, t.place(session.Fact()), true, n, entries{"[" + of, "(" + of + ordinalText(ordinal)})
	})
	slices.Reverse(list)
	return list, err
}

// Newest returns the sequence of the newest message of EPISODES that the store has, 0 for
// none. Of AUDIT it returns 0: no index has these sequences, and the audit log has them too.
func (s *Store) Newest(ctx context.Context) (episode, effect uint64, err error) {
	rows, err := s.page(ctx, of(kindState).atLeast("seq", 1), "", []any{"@seq", "DESC"}, 1, "@seq")
	if err != nil || len(rows) == 0 {
		return 0, 0, err
	}
	return uint64(toFloat(rows[0].get("seq"))), 0, nil
}

// checkList checks what lists have in common.
func checkList(sel scope.Selector, limit int) error {
	return cmp.Or(store.CheckLimit(limit), sel.Validate())
}

func tokens(ids []string) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = token(id)
	}
	return out
}
