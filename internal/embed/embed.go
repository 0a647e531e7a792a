package embed

import (
	"context"
	"errors"
	"math"
	"sync"
)

// ErrRefused marks an error that the same texts will always meet, such as one that is
// longer than the model reads. Any other error passes with time.
var ErrRefused = errors.New("embed: text refused")

// Embedder turns texts into unit vectors.
type Embedder interface {
	// Info is constant for the embedder's life; the index records it.
	Info() Info
	// Embed returns one L2-normalised vector of Info().Dimensions per text, in
	// order. An empty text gives the zero vector. An error that wraps [ErrRefused]
	// means that at least one of the texts can never be embedded. Safe for
	// concurrent use.
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

// Same reports whether two names are of one space.
func (i Info) Same(other Info) bool {
	return i.Name == other.Name && i.Version == other.Version && i.Dimensions == other.Dimensions
}

// String names the space as logs and reports do.
func (i Info) String() string { return i.Name + "@" + i.Version }

// Set returns the embedder of a space, nil where there is none.
type Set func(space Info) Embedder

// Only is the set of one embedder. A space without a name is its own too: there the
// first vector decides.
func Only(e Embedder) Set {
	return func(space Info) Embedder {
		if space.Name == "" || e.Info().Same(space) {
			return e
		}
		return nil
	}
}

// Making is the set of first and of those that make returns, nil where it makes none. Each
// is made once.
func Making(first Embedder, make func(space Info) Embedder) Set {
	var mu sync.Mutex
	made := []Embedder{first}
	return func(space Info) Embedder {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range made {
			if e.Info().Same(space) {
				return e
			}
		}
		e := make(space)
		if e != nil {
			made = append(made, e)
		}
		return e
	}
}

// Quantise moves a unit vector to one whose numbers are multiples, from -127 to 127, of
// one scale, so that a store needs a byte for each. That moves a similarity by less
// than a hundredth. The vector keeps its length within rounding.
func Quantise(v []float32) {
	var largest float32
	for _, x := range v {
		largest = max(largest, x, -x)
	}
	if largest == 0 {
		return
	}
	var sum float64
	for i, x := range v {
		k := math.RoundToEven(float64(x) / float64(largest) * math.MaxInt8)
		v[i] = float32(int8(k)) // no negative zero
		sum += k * k
	}
	scale := float32(1 / math.Sqrt(sum))
	for i := range v {
		v[i] *= scale
	}
}

// Normalise scales v to unit length; the zero vector stays what it is.
func Normalise(v []float32) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	scale := 1 / math.Sqrt(sum)
	for i := range v {
		v[i] = float32(float64(v[i]) * scale)
	}
}
