package redis

import (
	"context"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// sweepBatch is how many keys are looked at between two answers to others.
const sweepBatch = 512

// eachKey calls visit with the keys of a generation, in batches, on the node that
// has them; with some of them twice, if rows are added or removed meanwhile. In a
// cluster, nodes are visited at the same time.
func (s *Store) eachKey(ctx context.Context, l layout, visit func(ctx context.Context, node goredis.Cmdable, keys []string) error) error {
	return s.eachMatching(ctx, literally(l.root())+"*", visit)
}

func (s *Store) eachMatching(ctx context.Context, pattern string, visit func(ctx context.Context, node goredis.Cmdable, keys []string) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	scan := func(ctx context.Context, node goredis.UniversalClient) error {
		found := node.Scan(ctx, 0, pattern, sweepBatch).Iterator()
		batch := make([]string, 0, sweepBatch)
		for found.Next(ctx) {
			if batch = append(batch, found.Val()); len(batch) < sweepBatch {
				continue
			}
			if err := visit(ctx, node, slices.Clone(batch)); err != nil {
				return err
			}
			batch = batch[:0]
		}
		if err := found.Err(); err != nil || len(batch) == 0 {
			return err
		}
		return visit(ctx, node, batch)
	}
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return explain(cluster.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error { return scan(ctx, node) }))
	}
	return explain(scan(ctx, s.client))
}

// removeKeys removes keys in one round trip. In a cluster they may be of any slot
// of the node.
func removeKeys(ctx context.Context, node goredis.Cmdable, keys []string) error {
	pipe := node.Pipeline()
	for _, key := range keys {
		pipe.Unlink(ctx, key)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// deleteKeys removes every key of the generation.
func (s *Store) deleteKeys(ctx context.Context, l layout) error {
	for _, root := range []string{l.root(), l.wordsRoot()} {
		if err := s.eachMatching(ctx, literally(root)+"*", removeKeys); err != nil {
			return err
		}
	}
	return nil
}

// literally is a pattern that matches text and nothing else.
func literally(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(text)
}
