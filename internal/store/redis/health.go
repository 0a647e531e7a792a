package redis

import (
	"context"
	"fmt"

	"palimpsest/internal/store"
)

// Ping implements [store.Health]: the server takes a write, the index answers,
// and nothing that was acknowledged is missing.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := s.call(ctx, "SET", s.layout().shared("pinged"), s.cfg.Now().UnixMicro()); err != nil {
		return err
	}
	if _, err := s.look(ctx); err != nil {
		return err
	}
	if s.isLost() {
		return fmt.Errorf("redis: %w", store.ErrLost)
	}
	info, err := s.indexInfo(ctx)
	if err != nil {
		return err
	}
	s.watchFailures(info)
	return nil
}

// Stats implements [store.Health]. Bytes are those of the whole server.
func (s *Store) Stats(ctx context.Context) (store.Stats, error) {
	st := store.Stats{Schema: schemaVersion}
	m := s.tenure().spaces.Load()
	served := m.served()
	type counted struct {
		q    *query
		into *uint64
	}
	counts := []counted{
		{of(kindState).holding(), &st.Scopes}, {of(kindEpisode), &st.Episodes}, {of(kindFact), &st.Facts}, {of(kindVersion), &st.Versions},
		{of(kindEntity), &st.Entities}, {of(kindHold), &st.Holds}, {served.lacking(), &st.VectorsPending},
		{of(kindFact, kindEpisode).between(served.flag(), number(refused), number(refused)), &st.VectorsRefused},
	}
	if m.Next != nil {
		counts = append(counts, counted{m.Next.lacking(), &st.VectorsBuilding})
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
		*c.into = answerOf(replies[i]).total
	}
	st.Bytes = parseInfo(text(replies[len(counts)])).uint("used_memory")
	return st, err
}
