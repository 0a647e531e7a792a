// Package cursor says how far an ordered reader of a stream has come. A cursor is
// kept beside what the reader writes, so that a store that loses writes loses the
// cursor that counts them.
package cursor

import (
	"context"
	"time"
)

// Cursor is how far an ordered reader has come in its stream.
type Cursor struct {
	// Stream identifies the stream; a sequence of another one means nothing.
	Stream string `json:"stream"`
	// Sequence: the store has everything of the reader up to this stream sequence.
	Sequence uint64 `json:"sequence"`
	// Starts counts how often the reader was started since Sequence last moved.
	Starts int `json:"starts,omitempty"`
	// Alone is the sequence of the message that is handled by itself, 0 for none,
	// and Deaths counts how often that was begun and not answered.
	Alone  uint64 `json:"alone,omitempty"`
	Deaths int    `json:"deaths,omitempty"`
}

// Store keeps cursors.
type Store interface {
	// ReadCursors returns the cursor of each reader, the zero Cursor for an unknown
	// one.
	ReadCursors(ctx context.Context, readers ...string) ([]Cursor, error)
	// SetCursor replaces the cursor of a reader. It must be as durable as the
	// writes that returned before it was called.
	SetCursor(ctx context.Context, reader string, c Cursor) error
}

// Shares divides readers among processes, to save work done twice.
type Shares interface {
	// Share divides the readers of a group evenly among the processes that have
	// called it within their ttl, and returns those of process. A ttl of 0 removes
	// the process. Two processes may have a reader for a short time. A store that
	// belongs to one process gives it all.
	Share(ctx context.Context, group string, readers []string, process string, ttl time.Duration) ([]string, error)
}
