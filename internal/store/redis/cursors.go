package redis

import (
	"context"
	"encoding/json"
	"fmt"

	"palimpsest/internal/cursor"
)

// Keys of no scope, below [layout.shared].
const (
	keyCursors = "cursors" // hash: reader to cursor
	keyShares  = "readers" // hash of a group: processes and the readers that they have
)

// ReadCursors implements [cursor.Store].
func (s *Store) ReadCursors(ctx context.Context, readers ...string) ([]cursor.Cursor, error) {
	reply, err := s.call(ctx, with(readers, "HMGET", s.layout().shared(keyCursors))...)
	if err != nil {
		return nil, fmt.Errorf("read cursors: %w", err)
	}
	list, _ := reply.([]any)
	out := make([]cursor.Cursor, len(readers))
	for i, body := range list {
		if body == nil {
			continue
		}
		if err := json.Unmarshal([]byte(text(body)), &out[i]); err != nil {
			return nil, fmt.Errorf("read cursor of %s: %w", readers[i], err)
		}
	}
	return out, nil
}

// SetCursor implements [cursor.Store].
func (s *Store) SetCursor(ctx context.Context, reader string, least uint64, c cursor.Cursor) error {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("set cursor of %s: %w", reader, err)
	}
	t := s.tenure()
	set, err := s.guarded(ctx, t, cursorScript, []string{t.shared(keyCursors)}, reader, least, body)
	if err == nil && set == int64(0) {
		err = cursor.ErrWentBack
	}
	if err != nil {
		return fmt.Errorf("set cursor of %s: %w", reader, err)
	}
	return nil
}
