package local_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/embedtest"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/lex"
)

func TestEmbedder(t *testing.T) {
	t.Parallel()
	embedtest.RunAll(t, func(*testing.T) embed.Embedder { return local.New() }, embedtest.Options{})
}

// TestVectorsStay pins the space: a change of a vector requires a new version, or an
// index would mix two spaces.
func TestVectorsStay(t *testing.T) {
	t.Parallel()
	v := vector(t, "Anna plays the violin")
	best := 0
	for i := range v {
		if abs(v[i]) > abs(v[best]) {
			best = i
		}
	}
	const want = "1: 21, 0.3710"
	if got := fmt.Sprintf("%s: %d, %.4f", local.New().Info().Version, best, v[best]); got != want {
		t.Errorf("version and strongest dimension %s; want %s: a new space needs a new version", got, want)
	}
}

func TestFrequentWordsWeighLittle(t *testing.T) {
	t.Parallel()
	question := vector(t, "what is it that she plays in the orchestra")
	filler := dot(question, vector(t, "what is it that he saw in the mirror"))
	content := dot(question, vector(t, "orchestra players"))
	if content <= filler {
		t.Errorf("shared content words: %.3f, shared filler: %.3f", content, filler)
	}
}

func TestMisspellingIsNear(t *testing.T) {
	t.Parallel()
	right := vector(t, "kubernetes deployment")
	if near, far := dot(right, vector(t, "kuberentes deploymnet")), dot(right, vector(t, "violin concert")); near <= far+0.1 {
		t.Errorf("misspelt %.3f, unrelated %.3f", near, far)
	}
}

// TestUnitOrZero: any text at all has a vector of length 1, or 0 if it has no
// word.
func TestUnitOrZero(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		v := vector(t, text)
		n := dot(v, v)
		hasWords := len(lex.Words(text)) > 0
		if hasWords && (n < 0.999 || n > 1.001) || !hasWords && n != 0 {
			rt.Fatalf("length² %g of %q", n, text)
		}
	})
}

func FuzzEmbed(f *testing.F) {
	f.Add("Anna plays the violin")
	f.Add("\xff\xfe broken")
	f.Add("東京 ё İ ﬁ 👩‍👩‍👧")
	f.Fuzz(func(t *testing.T, text string) {
		if v := vector(t, text); dot(v, v) > 1.001 {
			t.Errorf("longer than 1: %q", text)
		}
	})
}

func BenchmarkEmbed(b *testing.B) {
	sentences := []string{
		"My sister Maria moved to Berlin last spring and works at a bakery.",
		"Could you remind me to call the dentist on Thursday afternoon?",
		"I prefer my coffee black, without sugar, and never after six.",
		"Моя собака Рекс очень любит гулять в парке по утрам.",
	}
	e := local.New()
	b.ReportAllocs()
	for i := range b.N {
		_, _ = e.Embed(b.Context(), sentences[i%len(sentences):][:1])
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
}

func BenchmarkEmbedLong(b *testing.B) {
	text := []string{strings.Repeat("a rather long episode, pasted from somewhere; ", 256<<10/46)}
	b.SetBytes(int64(len(text[0])))
	for b.Loop() {
		_, _ = local.New().Embed(b.Context(), text)
	}
}

func vector(t *testing.T, text string) []float32 {
	t.Helper()
	v, err := local.New().Embed(t.Context(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	return v[0]
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func abs(x float32) float32 { return max(x, -x) }
