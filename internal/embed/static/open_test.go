package static_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"palimpsest/internal/embed/static"
)

const tokenizer = `{"normalizer":{"type":"BertNormalizer","clean_text":true,"lowercase":true},
	"pre_tokenizer":{"type":"BertPreTokenizer"},
	"model":{"type":"WordPiece","unk_token":"?","continuing_subword_prefix":"##","vocab":{"?":0,"cat":1,"dog":2,"##s":3}}}`

// directory writes a model2vec directory and returns its path.
func directory(t *testing.T, tokenizer, header string, body []byte) string {
	t.Helper()
	dir := t.TempDir()
	table := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	table = append(append(table, header...), body...)
	for name, data := range map[string][]byte{"model.safetensors": table, "tokenizer.json": []byte(tokenizer)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func floats(numbers ...float32) (body []byte) {
	for _, x := range numbers {
		body = binary.LittleEndian.AppendUint32(body, math.Float32bits(x))
	}
	return body
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := directory(t, tokenizer, `{"embeddings":{"dtype":"F32","shape":[4,2],"data_offsets":[0,32]}}`, floats(9, 9, 1, 0, 0, 2, 0, 0))
	e, err := static.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Embed(t.Context(), []string{"Cat", "cats dog", "bird", "bird cat"})
	if err != nil {
		t.Fatal(err)
	}
	// The unknown token has a row, which does not count.
	want := [][]float32{{1, 0}, {0.4500, 0.8930}, {0, 0}, {1, 0}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-4)); diff != "" {
		t.Error(diff)
	}
}

// TestOpenShared reads a table whose tokens share rows and have weights.
func TestOpenShared(t *testing.T) {
	t.Parallel()
	header := `{"embeddings":{"dtype":"I8","shape":[2,2],"data_offsets":[0,4]},
		"weights":{"dtype":"F32","shape":[4],"data_offsets":[4,20]},
		"mapping":{"dtype":"I32","shape":[4],"data_offsets":[20,36]}}`
	body := append([]byte{10, 0, 0, 0xf6}, floats(1, 3, 4, 0)...) // rows (10, 0) and (0, -10)
	for _, row := range []uint32{0, 0, 1, 1} {
		body = binary.LittleEndian.AppendUint32(body, row)
	}
	e, err := static.Open(directory(t, tokenizer, header, body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := e.Embed(t.Context(), []string{"cat dogs"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float32{{0.5990, -0.8008}}, got, cmpopts.EquateApprox(0, 1e-4)); diff != "" {
		t.Error(diff)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	const one = `"embeddings":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}`
	for name, dir := range map[string]string{
		"no directory": filepath.Join(t.TempDir(), "none"),
		"no rows":      directory(t, tokenizer, `{}`, nil),
		"one axis":     directory(t, tokenizer, `{"embeddings":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, floats(1)),
		"type":         directory(t, tokenizer, `{"embeddings":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]}}`, []byte{0, 0}),
		"not finite":   directory(t, tokenizer, `{`+one+`}`, floats(float32(math.Inf(1)))),
		"weights":      directory(t, tokenizer, `{`+one+`,"weights":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, floats(1, 1, 1)),
		"mapping":      directory(t, tokenizer, `{`+one+`,"mapping":{"dtype":"I32","shape":[1],"data_offsets":[4,8]}}`, append(floats(1), 7, 0, 0, 0)),
		"tokenizer":    directory(t, strings.Replace(tokenizer, "WordPiece", "Unigram", 1), `{`+one+`}`, floats(1)),
	} {
		if _, err := static.Open(dir); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}
