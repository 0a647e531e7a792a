package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"palimpsest/internal/cursor"
)

// Keys of no scope, below [layout.shared].
const (
	keyCursors = "cursors" // hash: reader to cursor
	keyShares  = "readers" // hash of a group: processes and the readers that they have
)

// ReadCursors implements [cursor.Store].
func (s *Store) ReadCursors(ctx context.Context, readers ...string) ([]cursor.Cursor, error) {
	args := []any{"HMGET", s.layout().shared(keyCursors)}
	for _, r := range readers {
		args = append(args, r)
	}
	reply, err := s.call(ctx, args...)
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

// setCursors are the sequences of the cursors that were set in a tenure. They are
// still stored while its pass is accepted, except in a cluster, where a script
// shows none.
type setCursors struct {
	mu  sync.Mutex
	set map[string]uint64
}

func (c *setCursors) of(reader string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set[reader]
}

func (c *setCursors) note(reader string, sequence uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set == nil {
		c.set = map[string]uint64{}
	}
	c.set[reader] = sequence
}

// SetCursor implements [cursor.Store]. It reads what stands only where the pass does
// not vouch for it.
func (s *Store) SetCursor(ctx context.Context, reader string, least uint64, c cursor.Cursor) error {
	body, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("set cursor of %s: %w", reader, err)
	}
	t := s.tenure()
	if s.cluster() || t.pass == "" || t.cursors.of(reader) < least {
		if err := cursor.Check(ctx, s, reader, least); err != nil {
			return err
		}
	}
	if _, err := s.guarded(ctx, t, cursorScript, []string{t.shared(keyCursors)}, reader, body); err != nil {
		return fmt.Errorf("set cursor of %s: %w", reader, err)
	}
	t.cursors.note(reader, c.Sequence)
	return nil
}
