package sqlite

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
)

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestVectorsAreStoredExactly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.SliceOfN(rapid.Float32(), 1, 200).Draw(t, "magnitudes")
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float32 {
			if rapid.Bool().Draw(t, "zero") {
				return 0
			}
			return rapid.SampledFrom(few).Draw(t, "value")
		}), 1, 300).Draw(t, "values")
		raw := encodeVector(values)
		if len(raw) > 4*len(values) {
			t.Fatalf("%d bytes for %d numbers", len(raw), len(values))
		}
		got, err := decodeVector(nil, raw, len(values))
		if err != nil || !sameBits(got, values) {
			t.Fatalf("%v was decoded as %v, %v", values, got, err)
		}
	})
}

func TestVectorsOfTheLocalEmbedderArePacked(t *testing.T) {
	t.Parallel()
	vectors, err := local.New().Embed(t.Context(), []string{"I'm a hydrologist at Fenwick Labs, and I have two dogs.", "Ж", "?"})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		if raw := encodeVector(v); len(raw) > len(v) {
			t.Errorf("%d bytes for %d dimensions", len(raw), len(v))
		}
	}
}

func TestDamagedVectorsAreRefused(t *testing.T) {
	t.Parallel()
	raw := encodeVector([]float32{0, 1, -1, 2, 0, 0, 0, 0, 0, 0})
	for name, damaged := range map[string][]byte{
		"nothing": {}, "cut": raw[:len(raw)-1], "longer": append(slices.Clone(raw), 0), "head only": raw[:1],
		"another magnitude": append(slices.Clone(raw[:len(raw)-1]), 9),
	} {
		if got, err := decodeVector(nil, damaged, 10); err == nil {
			t.Errorf("%s: decoded as %v", name, got)
		}
	}
}

func TestScaledVectorsTakeAByteForEachNumber(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float32Range(-1, 1), 64, 300).Draw(t, "values")
		embed.Quantise(values)
		raw := encodeVector(values)
		if len(raw) > 5+len(values) {
			t.Fatalf("%d bytes for %d numbers", len(raw), len(values))
		}
		got, err := decodeVector(nil, raw, len(values))
		if err != nil || !sameBits(got, values) {
			t.Fatalf("%v was decoded as %v, %v", values, got, err)
		}
	})
}
