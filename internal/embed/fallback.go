package embed

import "context"

// Fallback returns an embedder that gives to other the texts that main does not cover.
// Both must have the same number of dimensions. Their vectors share a space: those of
// main and of other are as near to each other as chance has it, which is by a sixteenth
// of the whole at 256 dimensions.
func Fallback(main, other Embedder, covers func(text string) bool) Embedder {
	info := main.Info()
	info.Version += "+" + other.Info().String()
	return fallback{main, other, covers, info}
}

type fallback struct {
	main, other Embedder
	covers      func(string) bool
	info        Info
}

// Covers reports whether e gives a text's meaning, as far as it knows: the other of
// [Fallback] does not. It looks through a wrapper that has Unwrap.
func Covers(e Embedder, text string) bool {
	for {
		switch own := e.(type) {
		case fallback:
			return own.covers(text)
		case interface{ Unwrap() Embedder }:
			e = own.Unwrap()
		default:
			return true
		}
	}
}

// Info implements [Embedder].
func (f fallback) Info() Info { return f.info }

// Embed implements [Embedder].
func (f fallback) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for _, part := range []struct {
		by     Embedder
		covers bool
	}{{f.main, true}, {f.other, false}} {
		var of []string
		var at []int
		for i, text := range texts {
			if f.covers(text) == part.covers {
				of, at = append(of, text), append(at, i)
			}
		}
		if len(of) == 0 {
			continue
		}
		own, err := part.by.Embed(ctx, of)
		if err != nil {
			return nil, err
		}
		for i, v := range own {
			Quantise(v)
			vectors[at[i]] = v
		}
	}
	return vectors, nil
}
