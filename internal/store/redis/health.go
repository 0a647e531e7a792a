package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/store"
)

// Ping implements [store.Health]: the server takes a write, the index answers,
// and the generation is still the one in use.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.call(ctx, "SET", s.layout.shared("pinged"), s.cfg.Now().UnixMicro()); err != nil {
		return err
	}
	info, err := s.indexInfo(ctx)
	if err != nil {
		return err
	}
	s.watchFailures(info)
	current, err := s.promoted(ctx)
	if err != nil {
		return err
	}
	if current > s.layout.generation {
		return fmt.Errorf("redis: generation %d was replaced by %d: open the store anew", s.layout.generation, current)
	}
	return nil
}

// Stats implements [store.Health]. Bytes are those of the whole server.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	st := store.Stats{Schema: schemaVersion}
	counts := []struct {
		q    *query
		into *uint64
	}{
		{of(kindState).holding(), &st.Scopes}, {of(kindEpisode), &st.Episodes}, {of(kindFact), &st.Facts}, {of(kindVersion), &st.Versions},
		{of(kindEntity), &st.Entities}, {of(kindHold), &st.Holds}, {of(kindFact, kindEpisode).atLeast("q", 1), &st.VectorsPending},
	}
	commands := make([][]any, 0, len(counts)+1)
	for _, c := range counts {
		commands = append(commands, s.searchArgs(c.q, 0))
	}
	replies, err := s.pipe(ctx, append(commands, []any{"INFO", "memory"}))
	if err != nil {
		return st, err
	}
	for i, c := range counts {
		a, err := parseAnswer(replies[i])
		if err != nil {
			return st, err
		}
		*c.into = a.total
	}
	for line := range strings.Lines(text(replies[len(counts)])) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "used_memory:"); ok {
			st.Bytes, err = strconv.ParseUint(value, 10, 64)
		}
	}
	return st, err
}

// deleteBatch is how many keys are looked at between two answers to others.
const deleteBatch = 512

// deleteKeys removes every key of the generation.
func (s *Store) deleteKeys(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	// No pattern character can be in the root: the namespace alone is not ours.
	pattern := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s.layout.root()) + "*"
	scan := func(ctx context.Context, node goredis.UniversalClient) error {
		keys := node.Scan(ctx, 0, pattern, deleteBatch).Iterator()
		var failed error
		for failed == nil && keys.Next(ctx) {
			failed = node.Unlink(ctx, keys.Val()).Err()
		}
		return errors.Join(failed, keys.Err())
	}
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return explain(cluster.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error { return scan(ctx, node) }))
	}
	return explain(scan(ctx, s.client))
}
