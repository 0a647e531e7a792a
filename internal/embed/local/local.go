package local

import (
	"context"

	"palimpsest/internal/embed"
)

// Dimensions of every vector.
const Dimensions = 256

// version names the embedding space. Any change to what a text's vector is
// must change it: vectors of different versions never meet.
const version = "1"

// Embedder implements [embed.Embedder]. The zero value is ready and safe for
// concurrent use.
type Embedder struct{}

var _ embed.Embedder = Embedder{}

// New returns the embedder.
func New() Embedder { return Embedder{} }

// Info implements [embed.Embedder].
func (Embedder) Info() embed.Info {
	return embed.Info{Name: "local", Version: version, Dimensions: Dimensions, Semantic: false}
}

// Embed implements [embed.Embedder]. A text without a letter or digit gives
// the zero vector, as an empty one does. The only error is the context's.
func (Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var f features
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = make([]float32, Dimensions)
		f.read(text)
		f.project(vectors[i])
	}
	return vectors, nil
}
