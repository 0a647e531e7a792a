package redis

import (
	"context"
	"fmt"

	"palimpsest/internal/embed"
	"palimpsest/internal/store"
)

// Spaces implements [store.VectorSpaces].
func (s *Store) Spaces() store.Spaces {
	return store.Spaces{Served: store.Space{ID: 1, Embedder: *s.tenure().embedder.Load()}}
}

// BuildSpace implements [store.VectorSpaces].
func (s *Store) BuildSpace(_ context.Context, embedder embed.Info) error {
	if served := s.tenure().embedder.Load(); !served.Same(embedder) {
		return fmt.Errorf("redis: vectors are of %s: %w", served, store.ErrEmbedder)
	}
	return nil
}

// MoveSpaces implements [store.VectorSpaces].
func (*Store) MoveSpaces(context.Context) (bool, error) { return true, nil }
