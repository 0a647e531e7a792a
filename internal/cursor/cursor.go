// Package cursor records the position of an ordered reader of a stream. A cursor is
// stored together with the data that the reader writes, so that a store that loses
// writes loses the cursor that counts them too.
package cursor

import (
	"context"
	"errors"
	"time"
)

// ErrWentBack means that the stored sequence of a reader is lower than before. The
// store lost writes.
var ErrWentBack = errors.New("cursor: the stored cursor went back")

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
	// writes that returned before it was called. Where the stored sequence is below
	// least, which the caller has set or read before, it must change nothing and
	// return [ErrWentBack].
	SetCursor(ctx context.Context, reader string, least uint64, c Cursor) error
}

// Check reads the cursor of a reader and returns [ErrWentBack] where its sequence
// is below least. It is for stores that do not tell otherwise that they lost writes.
func Check(ctx context.Context, s Store, reader string, least uint64) error {
	if least == 0 {
		return nil
	}
	stored, err := s.ReadCursors(ctx, reader)
	if err == nil && stored[0].Sequence < least {
		err = ErrWentBack
	}
	return err
}

// Shares divides readers among processes, to save work done twice.
type Shares interface {
	// Share divides the readers of a group evenly among the processes that have
	// called it within their ttl, and returns those of process. A ttl of 0 removes
	// the process. Two processes may have a reader for a short time. A store that
	// belongs to one process gives it all.
	Share(ctx context.Context, group string, readers []string, process string, ttl time.Duration) ([]string, error)
}
