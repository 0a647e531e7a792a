package static

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

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

// ownTokenizer is a tokenizer.json, compressed: it takes 190 KB of the binary
// instead of 470.
//
//go:embed model/tokenizer.json.gz
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
	info      embed.Info
	tokenizer *wordpiece.Tokenizer
	table     *table
}

var _ embed.Embedder = (*Embedder)(nil)

// New returns the embedder with the table of this package.
func New() (*Embedder, error) {
	tokenizer, err := expand(ownTokenizer)
	if err != nil {
		return nil, fmt.Errorf("static embedder: %w", err)
	}
	return load("static", ownFiles, ownTable, tokenizer)
}

func expand(compressed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
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
	e, err := load("static:"+filepath.Base(dir), sum(tensors, tokenizer), tensors, tokenizer)
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

func load(name, sum string, tensors, tokenizer []byte) (*Embedder, error) {
	e := &Embedder{}
	var err error
	if e.tokenizer, err = wordpiece.Parse(tokenizer); err != nil {
		return nil, fmt.Errorf("static embedder: %w", err)
	}
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
// the zero vector, as an empty one does. The only error is the context's.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	ids := make([]int32, 0, 64)
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = make([]float32, e.table.dimensions)
		ids = e.tokenizer.Append(ids[:0], text)
		for _, id := range ids {
			if id != e.tokenizer.Unknown() {
				e.table.add(vectors[i], id)
			}
		}
		embed.Normalise(vectors[i])
		embed.Quantise(vectors[i])
	}
	return vectors, nil
}
