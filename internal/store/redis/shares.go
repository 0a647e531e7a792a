package redis

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// The fields of the hash of a group.
const (
	aliveField = "p:" // a process, for as long as it is alive, in whole seconds
	ownerField = "r:" // a reader: its process
)

// Share implements [cursor.Shares]. The life of a process is that of its field, by
// the clock of the server. Where nothing would change, that is prolonged and no
// script runs.
func (s *Store) Share(ctx context.Context, group string, readers []string, process string, ttl time.Duration) ([]string, error) {
	key := s.layout().shared(keyShares, group)
	if ttl <= 0 {
		_, err := s.call(ctx, "HDEL", key, aliveField+process)
		return nil, err
	}
	life := int(math.Ceil(ttl.Seconds()))
	replies, err := s.pipe(ctx, [][]any{{"HEXPIRE", key, life, "FIELDS", 1, aliveField + process}, {"HGETALL", key}})
	if err != nil {
		return nil, fmt.Errorf("share the readers of %s: %w", group, err)
	}
	if mine, settled := shareOf(hashOf(replies[1]), readers, process); settled {
		return mine, nil
	}
	reply, err := s.run(ctx, shareScript, []string{key}, with(readers, process, life)...)
	if err != nil {
		return nil, fmt.Errorf("share the readers of %s: %w", group, err)
	}
	return texts(reply), nil
}

// shareOf are the readers of a process; settled says that it is known to the others,
// and has to take none and to give none back.
func shareOf(f fields, readers []string, process string) (mine []string, settled bool) {
	processes, free := 0, false
	for name := range f {
		if strings.HasPrefix(name, aliveField) {
			processes++
		}
	}
	for _, r := range readers {
		owner := f[ownerField+r]
		if owner == process {
			mine = append(mine, r)
		} else if _, alive := f[aliveField+owner]; !alive {
			free = true
		}
	}
	share := (len(readers) + processes - 1) / max(1, processes)
	_, known := f[aliveField+process]
	return mine, known && (len(mine) == share || len(mine) < share && !free)
}
