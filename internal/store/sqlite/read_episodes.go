package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

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
	return store.Only(s.episodes(ctx, ` WHERE e.scope_id = ?1 AND e.id = ?2 AND (?3 = '' OR e.source = ?3) AND p.session = ?4
	  ORDER BY +e.ordinal LIMIT 1`, scopeID, id, source, full.Session))
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
