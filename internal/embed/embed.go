package embed

import "context"

// Embedder turns texts into unit vectors.
type Embedder interface {
	// Info is constant for the embedder's life; the index records it.
	Info() Info
	// Embed returns one L2-normalised vector of Info().Dimensions per text, in
	// order. An empty text gives the zero vector. Safe for concurrent use.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// Info names an embedding space: vectors of different spaces never meet.
type Info struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Dimensions int    `json:"dimensions"`
	// Semantic is false where similarity is lexical only.
	Semantic bool `json:"semantic"`
}
