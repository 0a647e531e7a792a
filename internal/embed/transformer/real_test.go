package transformer

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/embedtest"
	"palimpsest/internal/embed/kernel"
)

func realModel(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("TEST_TRANSFORMER")
	if dir == "" {
		t.Skip("TEST_TRANSFORMER names no directory of all-MiniLM-L6-v2")
	}
	return dir
}

// TestSimilarities compares all-MiniLM-L6-v2 with a computation in 64-bit floats by
// NumPy on tokens of Hugging Face's tokenizers. The last text is repeated until it
// is cut off.
func TestSimilarities(t *testing.T) {
	t.Parallel()
	dir := realModel(t)
	data, err := os.ReadFile(filepath.Join("testdata", "all-MiniLM-L6-v2.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Texts        []string
		Tokens       []int
		Similarities [][]float64
	}
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	last := len(want.Texts) - 1
	want.Texts[last] = strings.Repeat(want.Texts[last], 30)
	for _, set := range []*kernel.Set{kernel.Best(), kernel.Scalar()} {
		e, err := open(dir, set)
		if err != nil {
			t.Fatal(err)
		}
		vectors, err := e.Embed(t.Context(), want.Texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range want.Texts {
			if got := len(e.tokens(text)); got != want.Tokens[i] {
				t.Errorf("%d tokens of %.40q, want %d", got, text, want.Tokens[i])
			}
			for j, s := range want.Similarities[i] {
				if got := dot(vectors[i], vectors[j]); math.Abs(got-s) > 5e-6 {
					t.Errorf("%s: similarity of texts %d and %d is %.6f, want %.6f", set.Name, i, j, got, s)
				}
			}
		}
	}
}

func TestRealEmbedder(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, realModel(t))
	embedtest.RunAll(t, func(*testing.T) embed.Embedder { return e }, embedtest.Options{})
}

// BenchmarkEmbed reports what a question of 12 tokens and a text of 60 take, and
// texts together, also with the kernels in Go.
func BenchmarkEmbed(b *testing.B) {
	dir := realModel(b)
	question := "Which instrument does Anna play in the town now?"
	text := strings.Repeat("My sister Maria moved to Berlin last spring and works at a bakery near the station. ", 3) + "She likes it there very well."
	many := make([]string, 32)
	for i := range many {
		many[i] = text
	}
	for _, set := range []*kernel.Set{kernel.Best(), kernel.Scalar()} {
		e, err := open(dir, set)
		if err != nil {
			b.Fatal(err)
		}
		for name, texts := range map[string][]string{"question": {question}, "text": {text}, "batch": many} {
			tokens := 0
			for _, text := range texts {
				tokens += len(e.tokens(text))
			}
			b.Run(name+"/"+set.Name, func(b *testing.B) {
				for b.Loop() {
					if _, err := e.Embed(b.Context(), texts); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(tokens)/float64(len(texts)), "tokens/text")
				b.ReportMetric(float64(tokens)*float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	dir := realModel(b)
	for b.Loop() {
		mustOpen(b, dir)
	}
}
