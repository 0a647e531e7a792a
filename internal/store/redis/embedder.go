package redis

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

// meta is what a generation says of itself.
type meta struct {
	Schema   int        `json:"schema"`
	Embedder embed.Info `json:"embedder"`
}

func (s *Store) readMeta(ctx context.Context, l layout) (m meta, known bool, err error) {
	reply, err := s.call(ctx, "GET", l.shared(keyMeta))
	if err != nil || reply == nil {
		return m, false, err
	}
	if err := decode("meta", []byte(text(reply)), &m); err != nil {
		return m, false, err
	}
	if m.Schema > schemaVersion {
		return m, true, fmt.Errorf("redis: schema %d, this is %d: %w", m.Schema, schemaVersion, store.ErrNewer)
	}
	return m, true, nil
}

func (s *Store) writeMeta(ctx context.Context, m meta) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = s.call(ctx, "SET", s.layout().shared(keyMeta), raw)
	return err
}

// adoptEmbedder holds the generation to one schema and one embedding space. The
// space may change while there are no vectors, or when the caller wants them
// made anew.
func (s *Store) adoptEmbedder(ctx context.Context) error {
	m, known, err := s.readMeta(ctx, s.layout())
	if err != nil {
		return err
	}
	want := s.cfg.Embedder
	s.tenure().dimensions.Store(int64(m.Embedder.Dimensions))
	s.tenure().embedder.Store(&m.Embedder)
	if known && (want.Dimensions == 0 || m.Embedder.Same(want)) {
		return nil
	}
	if known && m.Embedder.Dimensions != 0 {
		if err := s.leaveSpace(ctx, m.Embedder); err != nil {
			return err
		}
	}
	s.tenure().dimensions.Store(int64(want.Dimensions))
	s.tenure().embedder.Store(&want)
	return s.writeMeta(ctx, meta{Schema: schemaVersion, Embedder: want})
}

// leaveSpace flags every row that has a vector or was refused one, and drops the
// vectors and the
// index, which cannot lose a field; it is made anew with the rows in place.
func (s *Store) leaveSpace(ctx context.Context, from embed.Info) error {
	held, err := s.vectorKeys(ctx, 1)
	if err != nil {
		return err
	}
	if to := s.cfg.Embedder; len(held) > 0 && !s.cfg.Reembed {
		return fmt.Errorf("redis: index of %s@%s (%d), embedder is %s@%s (%d): %w", from.Name, from.Version, from.Dimensions,
			to.Name, to.Version, to.Dimensions, store.ErrEmbedder)
	}
	for len(held) > 0 {
		commands := make([][]any, 0, 2*len(held))
		for _, key := range held {
			commands = append(commands, []any{"HDEL", key, "v"}, []any{"HSET", key, "q", s.cfg.Now().UnixMicro()})
		}
		if _, err := s.pipe(ctx, commands); err != nil {
			return err
		}
		if held, err = s.vectorKeys(ctx, 1000); err != nil {
			return err
		}
	}
	_, err = s.call(ctx, "FT.DROPINDEX", s.layout().index())
	if err != nil && isMissingIndex(err) {
		return nil
	}
	return err
}

// vectorKeys names rows that have a vector or were refused one: those of texts that
// are not pending, incognito episodes aside, which never have one.
func (s *Store) vectorKeys(ctx context.Context, limit int) ([]string, error) {
	q := of(kindFact, kindEpisode).between("q", "-1", "0")
	a, err := s.search(ctx, s.searchArgs(q, limit, "NOCONTENT"))
	if err != nil && isMissingIndex(err) {
		return nil, nil
	}
	keys := make([]string, len(a.rows))
	for i, r := range a.rows {
		keys[i] = string(r.key)
	}
	return keys, err
}

// setDimensions fixes the length of vectors by the first that is stored.
func (s *Store) setDimensions(ctx context.Context, n int) error {
	info := s.cfg.Embedder
	info.Dimensions = n
	if err := s.writeMeta(ctx, meta{Schema: schemaVersion, Embedder: info}); err != nil {
		return err
	}
	args := append([]any{"FT.ALTER", s.layout().index(), "SCHEMA", "ADD"}, s.vectorField(n)...)
	if _, err := s.call(ctx, args...); err != nil && !strings.Contains(strings.ToLower(err.Error()), "duplicate field") {
		return err
	}
	s.tenure().dimensions.Store(int64(n))
	s.tenure().embedder.Store(&info)
	return s.awaitIndex(ctx)
}
