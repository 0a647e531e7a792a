package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/pkg/events"
	"palimpsest/pkg/scope"
)

// EndSession implements [store.EpisodeWriter]. An end that names a last ordinal
// other than the session's newest is of the past: the session went on.
func (s *Store) EndSession(ctx context.Context, session scope.Scope, end events.SessionEnd) (memory.State, error) {
	if err := session.Validate(); err != nil {
		return memory.State{}, err
	}
	state := memory.State{}
	err := s.write(ctx, func(w *writer) error {
		state = memory.State{Scope: session.Fact(), Watermarks: map[string]uint64{}}
		row, err := w.scope(session.Fact())
		if err != nil || row == nil {
			return err
		}
		state = row.state()
		if session.Session == "" {
			return nil
		}
		end.Session = session.Session
		return w.endSession(row, session, end)
	})
	return state, err
}

func (w *writer) endSession(row *scopeRow, session scope.Scope, end events.SessionEnd) error {
	place, err := w.place(row, session)
	if err != nil || place == nil || place.lastOrdinal == 0 {
		return err
	}
	if end.LastOrdinal != 0 && end.LastOrdinal != place.lastOrdinal {
		return nil
	}
	end.LastOrdinal = place.lastOrdinal
	if err := w.insertEnd(row.id, end); err != nil {
		return err
	}
	if place.endedAt.Valid {
		return nil
	}
	place.endedAt = sql.NullInt64{Int64: micros(end.At), Valid: true}
	place.endCause = end.Cause
	w.move(place)
	return nil
}

func (w *writer) insertEnd(scopeID int64, end events.SessionEnd) error {
	err := w.exec(`INSERT OR IGNORE INTO session_ends (scope_id, last_ordinal, session, cause, at) VALUES (?, ?, ?, ?, ?)`,
		scopeID, end.LastOrdinal, end.Session, end.Cause, micros(end.At))
	if err != nil {
		return fmt.Errorf("insert session end: %w", err)
	}
	return nil
}
