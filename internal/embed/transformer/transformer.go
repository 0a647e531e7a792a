package transformer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/kernel"
	"palimpsest/internal/embed/wordpiece"
)

// version is that of the code between a text and its vector; the files are the
// rest of a space's version. Any change to what a text's vector is must change
// it: vectors of different versions never meet.
const version = "1"

// together is about how many tokens run through the model in one go: enough to
// read each weight once for many, few enough to stay in a processor's cache.
const together = 128

// Embedder implements [embed.Embedder]. It is safe for concurrent use.
//
// A call with one text runs at once. Calls with several take turns, so that they
// leave half of the processors to others.
type Embedder struct {
	info      embed.Info
	set       *kernel.Set
	tokenizer *wordpiece.Tokenizer
	begin     int32 // the token before a text
	end       int32 // the token behind it
	model     *model
	turns     chan struct{}
	scratch   sync.Pool
}

var _ embed.Embedder = (*Embedder)(nil)

// Open returns an embedder with the model of a directory in the layout of
// sentence-transformers: config.json with the model_type bert, model.safetensors,
// tokenizer.json or vocab.txt, and, where there are any, modules.json with the
// pooling's configuration and sentence_bert_config.json.
func Open(dir string) (*Embedder, error) {
	e, err := open(dir, kernel.Best())
	if err != nil {
		return nil, fmt.Errorf("transformer %s: %w", dir, err)
	}
	return e, nil
}

func open(dir string, set *kernel.Set) (*Embedder, error) {
	s, err := readSettings(dir)
	if err != nil {
		return nil, err
	}
	e := &Embedder{set: set, turns: make(chan struct{}, max(1, min(runtime.GOMAXPROCS(0), runtime.NumCPU())/2))}
	e.scratch.New = func() any { return new(scratch) }
	tokenizer, err := e.readTokenizer(dir, s.Vocabulary)
	if err != nil {
		return nil, err
	}
	weights, err := os.ReadFile(filepath.Join(dir, weightsFile))
	if err != nil {
		return nil, err
	}
	if e.model, err = newModel(s, weights); err != nil {
		return nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	files := sha256.New()
	_, _ = fmt.Fprintf(files, "%+v", s)
	files.Write(tokenizer)
	files.Write(weights)
	// The directory has no part in the name: a model that moved is the same space.
	e.info = embed.Info{
		Name: "transformer", Version: version + "-" + hex.EncodeToString(files.Sum(nil)[:6]),
		Dimensions: s.Hidden, Semantic: true,
	}
	return e, nil
}

// readTokenizer returns the bytes that it read.
func (e *Embedder) readTokenizer(dir string, vocabulary int) (data []byte, err error) {
	if data, err = os.ReadFile(filepath.Join(dir, wordsFile)); err == nil {
		e.tokenizer, err = wordpiece.Parse(data)
	} else if errors.Is(err, fs.ErrNotExist) {
		data, err = e.readVocabulary(dir)
	}
	if err != nil {
		return nil, err
	}
	var first, last bool
	e.begin, first = e.tokenizer.Special("[CLS]")
	e.end, last = e.tokenizer.Special("[SEP]")
	if !first || !last {
		return nil, errors.New("tokenizer: no special tokens [CLS] and [SEP]")
	}
	if largest := e.tokenizer.Largest(); int(largest) >= vocabulary {
		return nil, fmt.Errorf("tokenizer: token %d is beyond the vocab_size %d of the model", largest, vocabulary)
	}
	return data, nil
}

func (e *Embedder) readVocabulary(dir string) ([]byte, error) {
	vocabulary, err := os.ReadFile(filepath.Join(dir, vocabFile))
	if err != nil {
		return nil, fmt.Errorf("neither %s nor %s: %w", wordsFile, vocabFile, err)
	}
	casing, err := os.ReadFile(filepath.Join(dir, casingFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	e.tokenizer, err = wordpiece.ParseVocabulary(vocabulary, casing)
	return append(vocabulary, casing...), err
}

// Info implements [embed.Embedder].
func (e *Embedder) Info() embed.Info { return e.info }

// Memory is how many bytes the weights take.
func (e *Embedder) Memory() int { return e.model.bytes() }

// Kernels is the name of the [kernel.Set] that computes the vectors.
func (e *Embedder) Kernels() string { return e.set.Name }

// Embed implements [embed.Embedder]. The only error is the context's.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(texts) > 1 {
		select {
		case e.turns <- struct{}{}:
			defer func() { <-e.turns }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s := e.scratch.Get().(*scratch)
	defer e.scratch.Put(s)
	vectors := make([][]float32, len(texts))
	var batch [][]int32
	var into [][]float32
	tokens := 0
	for i, text := range texts {
		vectors[i] = make([]float32, e.info.Dimensions)
		ids := e.tokens(text)
		if len(ids) == 0 {
			continue
		}
		if tokens > 0 && tokens+len(ids) > together {
			if err := e.model.encode(ctx, e.set, s, batch, into); err != nil {
				return nil, err
			}
			batch, into, tokens = batch[:0], into[:0], 0
		}
		batch, into, tokens = append(batch, ids), append(into, vectors[i]), tokens+len(ids)
	}
	if err := e.model.encode(ctx, e.set, s, batch, into); err != nil {
		return nil, err
	}
	for _, v := range vectors {
		embed.Normalise(v)
	}
	return vectors, nil
}

// tokens returns the tokens of a text between those that begin and end it, or none
// where the vocabulary knows none of the text.
func (e *Embedder) tokens(text string) []int32 {
	ids := e.tokenizer.Append([]int32{e.begin}, text)
	if len(ids) > e.model.longest-1 {
		ids = ids[:e.model.longest-1]
	}
	for _, id := range ids[1:] {
		if id != e.tokenizer.Unknown() {
			return append(ids, e.end)
		}
	}
	return nil
}
