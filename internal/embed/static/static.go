package static

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zstd"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/wordpiece"
)

// The files of a model2vec directory that are read.
const (
	tableFile = "model.safetensors"
	wordsFile = "tokenizer.json"
)

//go:embed model/model.safetensors
var ownTable []byte

// ownTokenizer is a tokenizer.json, compressed: it takes 165 KB of the binary
// instead of 470.
//
//go:embed model/tokenizer.json.zst
var ownTokenizer []byte

// version is that of the code between a text and its vector; the files are the
// rest of a space's version. Any change to what a text's vector is must change
// it: vectors of different versions never meet.
const version = "2"

// ownFiles is the sum of the files of this package. To compute it at each start would
// read the whole table into memory, of which a process needs the rows of its texts.
const ownFiles = "05f374b520d7"

// Embedder implements [embed.Embedder]. It is safe for concurrent use.
type Embedder struct {
	info embed.Info
	// tokenizer is read when it is first needed: most processes embed nothing.
	tokenizer func() (*wordpiece.Tokenizer, error)
	table     *table
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns the embedder with the table of this package.
func New() (*Embedder, error) {
	return load("static", ownFiles, ownTable, func() ([]byte, error) { return expand(ownTokenizer) })
}

func expand(compressed []byte) ([]byte, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.DecodeAll(compressed, nil)
}

// Open returns an embedder with the table of a model2vec directory: the tensor
// "embeddings" of model.safetensors, with "weights" and "mapping" if there are
// any, and a WordPiece tokenizer.json.
func Open(dir string) (*Embedder, error) {
	tensors, err := os.ReadFile(filepath.Join(dir, tableFile))
	if err != nil {
		return nil, fmt.Errorf("static embedder: %w", err)
	}
	tokenizer, err := os.ReadFile(filepath.Join(dir, wordsFile))
	if err != nil {
		return nil, fmt.Errorf("static embedder: %w", err)
	}
	e, err := load("static:"+filepath.Base(dir), sum(tensors, tokenizer), tensors, func() ([]byte, error) { return tokenizer, nil })
	if err == nil {
		_, err = e.tokenizer()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return e, nil
}

// sum identifies the files of a table in the version of its space.
func sum(tensors, tokenizer []byte) string {
	files := sha256.New()
	files.Write(tensors)
	files.Write(tokenizer)
	return hex.EncodeToString(files.Sum(nil)[:6])
}

func load(name, sum string, tensors []byte, tokenizer func() ([]byte, error)) (*Embedder, error) {
	e := &Embedder{tokenizer: sync.OnceValues(func() (*wordpiece.Tokenizer, error) {
		text, err := tokenizer()
		if err != nil {
			return nil, fmt.Errorf("static embedder: %w", err)
		}
		words, err := wordpiece.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("static embedder: %w", err)
		}
		return words, nil
	})}
	var err error
	if e.table, err = readTable(tensors); err != nil {
		return nil, fmt.Errorf("static embedder: %w", err)
	}
	e.info = embed.Info{
		Name: name, Version: version + "-" + sum,
		Dimensions: e.table.dimensions, Semantic: true,
	}
	return e, nil
}

// Info implements [embed.Embedder].
func (e *Embedder) Info() embed.Info { return e.info }

// Embed implements [embed.Embedder]. A text without a token of the table gives
// the zero vector, as an empty one does. An error is the context's, or that of a damaged
// table in the binary.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	tokenizer, err := e.tokenizer()
	if err != nil {
		return nil, err
	}
	vectors := make([][]float32, len(texts))
	ids := make([]int32, 0, 64)
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = make([]float32, e.table.dimensions)
		ids = tokenizer.Append(ids[:0], text)
		for _, id := range ids {
			if id != tokenizer.Unknown() {
				e.table.add(vectors[i], id)
			}
		}
		embed.Normalise(vectors[i])
		embed.Quantise(vectors[i])
	}
	return vectors, nil
}
