package transformer

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/embedtest"
	"palimpsest/internal/embed/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEmbedder(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]*kernel.Set{"best": kernel.Best(), "scalar": kernel.Scalar()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newTiny(128, 4).write(t, false, nil)
			embedtest.RunAll(t, func(t *testing.T) embed.Embedder {
				e, err := open(dir, set)
				if err != nil {
					t.Fatal(err)
				}
				return e
			}, embedtest.Options{})
		})
	}
}

// TestReference compares vectors with those of the plain computation, for sizes
// that fill the kernels and for one that does not, alone and among others.
func TestReference(t *testing.T) {
	t.Parallel()
	texts := []string{"a", "the cat sat", "Anna plays the violin in an orchestra", "кошка спит", "two words", "x y z x y z"}
	for _, c := range []struct {
		name          string
		hidden, heads int
		first, half   bool
	}{
		{"mean", 32, 2, false, false}, {"first", 32, 4, true, false}, {"padded", 24, 2, false, false}, {"half", 48, 3, false, true},
	} {
		for _, set := range []*kernel.Set{kernel.Best(), kernel.Scalar()} {
			m := newTiny(c.hidden, c.heads)
			if c.half { // weights that 16 bits hold exactly
				for _, tensor := range m.tensors {
					for i, x := range tensor.numbers {
						tensor.numbers[i] = float32(math.Round(float64(x)*256) / 256)
					}
				}
			}
			files := map[string]string{}
			if c.first {
				files[modulesFile] = `[{"type":"sentence_transformers.models.Transformer","path":""},{"type":"sentence_transformers.models.Pooling","path":"1_Pooling"}]`
				files["1_Pooling/config.json"] = `{"word_embedding_dimension":32,"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}`
			}
			e, err := open(m.write(t, c.half, files), set)
			if err != nil {
				t.Fatal(err)
			}
			vectors, err := e.Embed(t.Context(), texts)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range texts {
				for k, want := range m.reference(text, c.first) {
					if got := float64(vectors[i][k]); math.Abs(got-want) > 2e-6 {
						t.Fatalf("%s, %s: dimension %d of %q is %g, want %g", c.name, set.Name, k, text, got, want)
					}
				}
			}
		}
	}
}

// TestVocabulary: vocab.txt gives the vectors of tokenizer.json.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	m := newTiny(32, 2)
	old := map[string]string{wordsFile: "", vocabFile: strings.Join(m.vocabulary, "\n") + "\n", casingFile: `{"do_lower_case":true}`}
	a, b := mustOpen(t, m.write(t, false, nil)), mustOpen(t, m.write(t, false, old))
	const text = "The Cat sat: ok."
	if got := similarity(t, a, b, text, text); got < 1-1e-6 {
		t.Errorf("similarity %g", got)
	}
}

// TestLongest: a text is cut where the model ends, or sentence-transformers says.
func TestLongest(t *testing.T) {
	t.Parallel()
	m := newTiny(32, 2)
	all, short := mustOpen(t, m.write(t, false, nil)), mustOpen(t, m.write(t, false, map[string]string{sentenceFile: `{"max_seq_length":5}`}))
	if got := similarity(t, all, all, strings.Repeat("a ", 62), strings.Repeat("a ", 500)); got < 1-1e-6 {
		t.Errorf("a text of 500 tokens is not its first 62: %g", got)
	}
	if got := similarity(t, short, all, "a b c d e f", "a b c"); got < 1-1e-6 {
		t.Errorf("a text of 6 tokens is not its first 3: %g", got)
	}
	if all.Info().Version == short.Info().Version {
		t.Error("another length is the same space")
	}
}

// TestNoCover: a text without a known token has no direction.
func TestNoCover(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, newTiny(32, 2).write(t, false, nil))
	vectors, err := e.Embed(t.Context(), []string{"", " \n", "ไทย", "a", "ไทย a"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0, 0, 0, 1, 1} {
		if got := dot(vectors[i], vectors[i]); math.Abs(got-want) > 1e-5 {
			t.Errorf("text %d has the length %g, want %g", i, got, want)
		}
	}
}

// TestSpaceStays pins the version of a space. A change of the settings or the code
// that leaves the vectors as they are must not change it.
func TestSpaceStays(t *testing.T) {
	t.Parallel()
	const space = "1-e51c56bb66f0"
	if got := mustOpen(t, newTiny(32, 2).write(t, false, nil)).Info().Version; got != space {
		t.Errorf("version %q, want %q", got, space)
	}
}

// TestChangedWeights: other weights are another space.
func TestChangedWeights(t *testing.T) {
	t.Parallel()
	m := newTiny(32, 2)
	before := mustOpen(t, m.write(t, false, nil)).Info()
	if again := mustOpen(t, m.write(t, false, nil)).Info(); again != before {
		t.Errorf("the same files are two spaces: %v, %v", before, again)
	}
	m.tensors["encoder.layer.1.output.dense.bias"].numbers[3] += 0.5
	if after := mustOpen(t, m.write(t, false, nil)).Info(); after.Version == before.Version || after.Name != before.Name {
		t.Errorf("changed weights: %v, then %v", before, after)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	m := newTiny(32, 2)
	const pooling = `[{"type":"sentence_transformers.models.Pooling","path":"p"}]`
	wrong, lacking, infinite := newTiny(32, 2), newTiny(32, 2), newTiny(32, 2)
	wrong.Between = 48
	delete(lacking.tensors, "encoder.layer.1.attention.self.key.bias")
	infinite.tensors["embeddings.LayerNorm.bias"].numbers[0] = float32(math.Inf(1))
	for name, c := range map[string]struct {
		model *tiny
		files map[string]string
		want  string
	}{
		"no config":    {m, map[string]string{configFile: ""}, configFile},
		"no weights":   {m, map[string]string{weightsFile: ""}, weightsFile},
		"no tokenizer": {m, map[string]string{wordsFile: ""}, vocabFile},
		"architecture": {m, map[string]string{configFile: `{"model_type":"xlm-roberta"}`}, `model_type "xlm-roberta"`},
		"activation":   {m, map[string]string{configFile: `{"model_type":"bert","hidden_act":"relu"}`}, `hidden_act "relu"`},
		"no sizes":     {m, map[string]string{configFile: `{"model_type":"bert"}`}, "size"},
		"heads":        {m, map[string]string{configFile: sized(32, 3)}, "multiple of 3"},
		"lanes":        {m, map[string]string{configFile: sized(36, 3)}, "multiple of 8"},
		"not JSON":     {m, map[string]string{configFile: "{"}, configFile},
		"cut off":      {m, map[string]string{weightsFile: m.safetensors(t, false)[:5000]}, weightsFile},
		"shape":        {wrong, nil, "intermediate.dense.weight has the shape [40 32], not [48 32]"},
		"lacking":      {lacking, nil, "no tensor encoder.layer.1.attention.self.key.bias"},
		"infinite":     {infinite, nil, "holds +Inf"},
		"unigram":      {m, map[string]string{wordsFile: `{"model":{"type":"Unigram"}}`}, "WordPiece"},
		"larger":       {m, map[string]string{wordsFile: "", vocabFile: strings.Join(m.vocabulary, "\n") + "\nmore\n"}, "beyond the vocab_size"},
		"no special":   {m, map[string]string{wordsFile: "", vocabFile: "[UNK]\na\n"}, "[CLS]"},
		"dense":        {m, map[string]string{modulesFile: `[{"type":"sentence_transformers.models.Dense","path":"2"}]`}, `"Dense"`},
		"no pooling":   {m, map[string]string{modulesFile: pooling}, filepath.Join("p", configFile)},
		"maximum":      {m, map[string]string{modulesFile: pooling, "p/config.json": `{"pooling_mode_max_tokens":true}`}, "max_tokens"},
		"too short":    {m, map[string]string{sentenceFile: `{"max_seq_length":2}`}, "max_seq_length"},
	} {
		dir := c.model.write(t, false, c.files)
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v; want %q in it", name, err, c.want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

func sized(hidden, heads int) string {
	m := newTiny(hidden, heads)
	return strings.Replace(strings.Replace(`{"model_type":"bert","hidden_size":H,"num_hidden_layers":2,"num_attention_heads":A,"intermediate_size":40,
		"max_position_embeddings":64,"vocab_size":9}`, "H", strconv.Itoa(m.Hidden), 1), "A", strconv.Itoa(m.Heads), 1)
}

// TestTurns: texts in bulk wait for their turn; a question does not, and a call
// whose context ends stops waiting.
func TestTurns(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, newTiny(32, 2).write(t, false, nil))
	for range cap(e.turns) {
		e.turns <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := e.Embed(ctx, []string{"a", "b"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Embed of two texts while all turns are taken = %v", err)
	}
	if _, err := e.Embed(t.Context(), []string{"a question"}); err != nil {
		t.Errorf("Embed of one text while all turns are taken = %v", err)
	}
	done := make(chan error)
	go func() {
		_, err := e.Embed(t.Context(), []string{"a", "b"})
		done <- err
	}()
	<-e.turns
	if err := <-done; err != nil {
		t.Errorf("Embed after a turn became free = %v", err)
	}
}

// TestCancelled: a context that ends between two layers stops the computation.
func TestCancelled(t *testing.T) {
	t.Parallel()
	e := mustOpen(t, newTiny(32, 2).write(t, false, nil))
	ctx := &ending{Context: t.Context(), asked: 3} // by Embed, and before each layer
	if _, err := e.Embed(ctx, []string{"a text"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Embed = %v", err)
	}
}

// ending is a context that is cancelled when it is asked for the last time.
type ending struct {
	context.Context
	mu    sync.Mutex
	asked int
}

func (c *ending) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked--; c.asked <= 0 {
		return context.Canceled
	}
	return nil
}

func mustOpen(t testing.TB, dir string) *Embedder {
	t.Helper()
	e, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func vector(t testing.TB, e *Embedder, text string) []float32 {
	t.Helper()
	v, err := e.Embed(t.Context(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	return v[0]
}

func similarity(t testing.TB, a, b *Embedder, text, other string) float64 {
	t.Helper()
	return dot(vector(t, a, text), vector(t, b, other))
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
