package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/internal/store"
	"palimpsest/pkg/events"
)

// The flags of an episode's row.
const (
	flagClamped = 1 << iota
	flagRequest
	flagVerbatim
)

// newEpisode is an episode with all that can be worked out before it is the
// writer's turn.
type newEpisode struct {
	memory.Episode
	terms    []string
	metadata *string
}

// PutEpisode implements [store.EpisodeWriter].
func (s *Store) PutEpisode(ctx context.Context, e memory.Episode) (store.Put, error) {
	return store.Only(s.PutEpisodes(ctx, []memory.Episode{e}))
}

// PutEpisodes implements [store.EpisodeWriter].
func (s *Store) PutEpisodes(ctx context.Context, es []memory.Episode) ([]store.Put, error) {
	all := make([]newEpisode, len(es))
	for i, e := range es {
		var err error
		if all[i], err = s.prepareEpisode(e); err != nil {
			return nil, err
		}
	}
	puts := make([]store.Put, len(all))
	err := s.write(ctx, func(w *writer) (err error) {
		for i, n := range all {
			if puts[i], err = w.putEpisode(n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return puts, nil
}

func (s *Store) prepareEpisode(e memory.Episode) (newEpisode, error) {
	e, err := store.PrepareEpisode(e, s.cfg.Now)
	if err != nil {
		return newEpisode{}, err
	}
	n := newEpisode{Episode: e, terms: indexTerms(e.Content)}
	if len(e.Metadata) > 0 {
		raw, err := json.Marshal(e.Metadata)
		if err != nil {
			return newEpisode{}, fmt.Errorf("sqlite: put episode: metadata: %w", err)
		}
		text := string(raw)
		n.metadata = &text
	}
	return n, nil
}

func (w *writer) putEpisode(n newEpisode) (store.Put, error) {
	row, err := w.makeScope(n.Scope.Fact())
	if err != nil {
		return store.Put{}, err
	}
	arrived := micros(n.ArrivedAt)
	place, err := w.makePlace(row, n.Scope, arrived)
	if err != nil {
		return store.Put{}, err
	}
	n.Ordinal = row.lastOrdinal + 1
	id, inserted, err := w.insertEpisode(n, row.id, place.id)
	if err != nil {
		return store.Put{}, err
	}
	if !inserted {
		return w.knownEpisode(n, row, place.id)
	}
	if err := w.indexText(episodeTable, &row.episodes, row.id, id, n.terms); err != nil {
		return store.Put{}, err
	}
	if n.Mode != events.ModeIncognito {
		if err := w.queueVector(store.Episodes, id, row.fact.Project); err != nil {
			return store.Put{}, err
		}
	}
	row.lastOrdinal = n.Ordinal
	w.change(row)
	place.lastOrdinal = n.Ordinal
	place.lastSeen = max(place.lastSeen, arrived)
	place.endedAt.Valid, place.endCause = false, ""
	place.live = place.live || n.Mode != events.ModeBackfill
	w.move(place)
	if err := w.announce(row); err != nil {
		return store.Put{}, err
	}
	return store.Put{Episode: n.Episode, State: row.state()}, nil
}

func (w *writer) insertEpisode(n newEpisode, scopeID, placeID int64) (row int64, inserted bool, err error) {
	flags := 0
	for bit, set := range map[int]bool{flagClamped: n.Clamped, flagRequest: n.Request, flagVerbatim: n.Verbatim} {
		if set {
			flags |= bit
		}
	}
	var trace any // null costs nothing where nothing is traced
	if n.Traceparent != "" {
		trace = n.Traceparent
	}
	_, offset := n.Timestamp.Zone()
	res, err := w.run(`INSERT INTO episodes (scope_id, place_id, ordinal, id, source, ts, ts_offset, arrived, role, mode,
	  flags, seq, node, correlation, prompt, metadata, content, trace)
	  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	  ON CONFLICT (scope_id, id, source, place_id) DO NOTHING`,
		scopeID, placeID, n.Ordinal, n.ID, n.Source, micros(n.Timestamp), offset, micros(n.ArrivedAt), n.Role, n.Mode,
		flags, n.Seq, n.SourceNode, n.CorrelationID, n.Prompt, n.metadata, n.Content, trace)
	if err != nil {
		return 0, false, fmt.Errorf("insert episode: %w", err)
	}
	if count, err := res.RowsAffected(); err != nil || count == 0 {
		return 0, false, err
	}
	row, err = res.LastInsertId()
	return row, true, err
}

// knownEpisode answers for an id that is stored already.
func (w *writer) knownEpisode(n newEpisode, row *scopeRow, placeID int64) (store.Put, error) {
	var known []memory.Episode
	err := w.each(context.Background(), selectEpisode+` WHERE e.scope_id = ? AND e.id = ? AND e.source = ? AND e.place_id = ?`,
		[]any{row.id, n.ID, n.Source, placeID}, func(r scanner) error {
			e, err := scanEpisode(r)
			known = append(known, e)
			return err
		})
	found, err := store.Only(known, err)
	if err != nil {
		return store.Put{}, fmt.Errorf("read the known episode: %w", err)
	}
	return store.KnownPut(n.Episode, found, row.state()), nil
}

// announce makes sure that every watched rule whose watermark is below has the
// scope in pending.
func (w *writer) announce(row *scopeRow) error {
	if row.announced {
		return nil
	}
	rules, err := w.watched()
	if err != nil {
		return err
	}
	row.announced = true
	for _, rule := range rules {
		// A store that is rebuilt may get effects before their episodes.
		if row.watermarks[rule] >= row.lastOrdinal {
			row.announced = false
			continue
		}
		err := w.exec(`INSERT OR IGNORE INTO pending (rule, project, key, scope_id) VALUES (?, ?, ?, ?)`,
			rule, row.fact.Project, row.key, row.id)
		if err != nil {
			return fmt.Errorf("announce: %w", err)
		}
	}
	return nil
}

// watched returns the rules whose pending rows are kept.
func (w *writer) watched() ([]string, error) {
	if w.rows.watched != nil {
		return w.rows.watched, nil
	}
	rules := []string{}
	err := w.each(context.Background(), `SELECT rule FROM watched ORDER BY rule`, nil, func(row scanner) error {
		var rule string
		err := row.Scan(&rule)
		rules = append(rules, rule)
		return err
	})
	if err == nil {
		w.rows.watched = rules
	}
	return rules, err
}
