package auth

import (
	"context"
	"fmt"
	"time"

	"palimpsest/internal/cursor"
)

// markReader names the mark among the cursors of a store. A sequence above 0 says
// that a key was made. The stream of keys may be lost; the stores lie elsewhere.
const (
	markReader = "api-keys"
	markStream = "KV_KEYS"
)

// markLimit bounds one write of a mark: changes of keys wait meanwhile.
const markLimit = time.Second

// readMarks asks the stores whether a key was made. The first store must answer;
// another one may be away for a while.
func (r *Ring) readMarks(ctx context.Context) error {
	for i, in := range r.marks {
		got, err := in.ReadCursors(ctx, markReader)
		if err != nil && i == 0 {
			return fmt.Errorf("read whether API keys were made: %w", err)
		}
		if err != nil {
			r.log.WarnContext(ctx, "auth: read whether keys were made", "error", err)
		}
		if err == nil && got[0].Sequence > 0 {
			r.marked = true
		} else {
			r.unmarked = append(r.unmarked, in)
		}
	}
	return nil
}

// mark writes into the stores that a key was made. What fails is tried again after
// the next read of the bucket.
func (r *Ring) mark(ctx context.Context) {
	if len(r.unmarked) == 0 || !r.Any() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, markLimit)
	defer cancel()
	for len(r.unmarked) > 0 {
		err := r.unmarked[0].SetCursor(ctx, markReader, 0, cursor.Cursor{Stream: markStream, Sequence: 1})
		if err != nil {
			r.log.DebugContext(ctx, "auth: write that a key was made", "error", err)
			return
		}
		r.unmarked = r.unmarked[1:]
	}
}
