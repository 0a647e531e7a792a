package ingest

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"palimpsest/internal/cursor"
)

// shares remembers which partitions the process was last given to read: it embeds
// what these hold.
type shares struct {
	cursor.Shares
	mine atomic.Pointer[[]int]
}

// Share implements [cursor.Shares] for the readers of [Partitions].
func (s *shares) Share(ctx context.Context, group string, readers []string, process string, ttl time.Duration) ([]string, error) {
	mine, err := s.Shares.Share(ctx, group, readers, process, ttl)
	if err != nil {
		return nil, err
	}
	parts := make([]int, len(mine))
	for i, name := range mine {
		parts[i] = slices.Index(readers, name)
	}
	s.mine.Store(&parts)
	return mine, nil
}

// partitions are none until the process was given its share.
func (s *shares) partitions() []int {
	if parts := s.mine.Load(); parts != nil {
		return *parts
	}
	return nil
}
