package static_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/embedtest"
	"palimpsest/internal/embed/static"
)

// shared is one embedder for the tests: reading the table takes time.
var shared = sync.OnceValues(static.New)

func open(t testing.TB) embed.Embedder {
	t.Helper()
	e, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEmbedder(t *testing.T) {
	t.Parallel()
	embedtest.RunAll(t, func(t *testing.T) embed.Embedder { return open(t) },
		embedtest.Options{Latin: "the table has no vectors of other scripts"})
}

// TestTwoAreOne: two embedders of one table are of one space.
func TestTwoAreOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"model.safetensors", "tokenizer.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), shipped(t, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := static.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	own, read := open(t).Info(), again.Info()
	if own.Version != read.Version || own.Dimensions != read.Dimensions || !own.Semantic {
		t.Errorf("the table of the binary is %+v, that of its directory %+v", own, read)
	}
}

// shipped returns a file of the table, expanded if it is compressed.
func shipped(t testing.TB, name string) []byte {
	t.Helper()
	path := filepath.Join("model", name)
	data, err := os.ReadFile(path)
	if err == nil {
		return data
	}
	compressed, err := os.ReadFile(path + ".zst")
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if data, err = r.DecodeAll(compressed, nil); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFilesStay holds the shipped files to their recorded sums.
func TestFilesStay(t *testing.T) {
	t.Parallel()
	sums, err := os.Open("model/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	defer sums.Close()
	files := 0
	for lines := bufio.NewScanner(sums); lines.Scan(); files++ {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		if got := sha256.Sum256(shipped(t, name)); hex.EncodeToString(got[:]) != want {
			t.Errorf("%s has the sum %x, not %s", name, got, want)
		}
	}
	if files != 2 {
		t.Errorf("%d sums, want 2", files)
	}
}

// TestVectorsStay pins the vector space. A change of the vectors that leaves the
// files as they are needs a new version.
func TestVectorsStay(t *testing.T) {
	t.Parallel()
	const space, nearness = "2-05f374b520d7", 0.5315
	if got := open(t).Info().Version; got != space {
		t.Errorf("version %q, want %q", got, space)
	}
	if got := similarity(t, "Anna plays the violin", "a musician in an orchestra"); got < nearness-1e-4 || got > nearness+1e-4 {
		t.Errorf("similarity %.4f, want %.4f: a new space needs a new version", got, nearness)
	}
}

// TestNoCover: a text without a token of the table has no direction.
func TestNoCover(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"Кошка спит на подоконнике", "我在北京", "東京タワー", "안녕하세요", "हिन्दी", "👩‍👩‍👧 🙂", " \t\n"} {
		if v := vector(t, text); dot(v, v) != 0 {
			t.Errorf("%q has a vector", text)
		}
	}
	if mixed := similarity(t, "Кошка likes Berlin", "likes Berlin"); mixed < 0.999 {
		t.Errorf("words without a vector moved the others' by %.3f", 1-mixed)
	}
}

// TestUnitOrZero: any text at all has a vector of length 1 or 0.
func TestUnitOrZero(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		if v := vector(t, text); dot(v, v) != 0 && (dot(v, v) < 0.999 || dot(v, v) > 1.001) {
			rt.Fatalf("length² %g of %q", dot(v, v), text)
		}
	})
}

func BenchmarkEmbed(b *testing.B) {
	sentences := []string{
		"My sister Maria moved to Berlin last spring and works at a bakery.",
		"Could you remind me to call the dentist on Thursday afternoon?",
		"I prefer my coffee black, without sugar, and never after six.",
		"The quarterly hydrological survey of the Kazbegi catchment was postponed.",
	}
	e := open(b)
	b.ReportAllocs()
	for i := range b.N {
		_, _ = e.Embed(b.Context(), sentences[i%len(sentences):][:1])
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := static.New(); err != nil {
			b.Fatal(err)
		}
	}
}

func vector(t testing.TB, text string) []float32 {
	t.Helper()
	v, err := open(t).Embed(t.Context(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	return v[0]
}

func similarity(t testing.TB, a, b string) float64 {
	t.Helper()
	return dot(vector(t, a), vector(t, b))
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
