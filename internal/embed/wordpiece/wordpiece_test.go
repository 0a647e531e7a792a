package wordpiece_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"palimpsest/internal/embed/wordpiece"
)

// bert is the vocabulary of the uncased BERT, which the static embedder ships.
const bert = "../static/model/tokenizer.json.zst"

// vocabulary returns the tokenizer.json of bert.
func vocabulary(t testing.TB) []byte {
	t.Helper()
	compressed, err := os.ReadFile(bert)
	if err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	text, err := r.DecodeAll(compressed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func open(t testing.TB) *wordpiece.Tokenizer {
	t.Helper()
	tokenizer, err := wordpiece.Parse(vocabulary(t))
	if err != nil {
		t.Fatal(err)
	}
	return tokenizer
}

// TestReference compares with ids that Hugging Face's tokenizers 0.23.3 gives for
// the same file.
func TestReference(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text string
		IDs  []int32
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 20 {
		t.Fatalf("only %d texts", len(cases))
	}
	tokenizer := open(t)
	for _, c := range cases {
		if diff := cmp.Diff(c.IDs, tokenizer.Append(nil, c.Text)); diff != "" {
			t.Errorf("%q: %s", c.Text, diff)
		}
	}
}

func TestSpecialTokensAreNoWords(t *testing.T) {
	t.Parallel()
	tokenizer := open(t)
	start, ok := tokenizer.Special("[CLS]")
	if !ok || start != 101 {
		t.Errorf("[CLS] is %d, %t", start, ok)
	}
	for _, id := range tokenizer.Append(nil, "[CLS] cls") {
		if id == start {
			t.Error("a text gave the special token")
		}
	}
}

const small = `{"normalizer":{"type":"BertNormalizer","clean_text":true,"lowercase":false},
	"pre_tokenizer":{"type":"BertPreTokenizer"},
	"model":{"type":"WordPiece","unk_token":"?","continuing_subword_prefix":"##","vocab":{"?":0,"é":1,"A":2,"##é":3}}}`

func TestCaseAndAccentsAreKept(t *testing.T) {
	t.Parallel()
	tokenizer, err := wordpiece.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{1, 2, 3, 0}, tokenizer.Append(nil, "é Aé aé")); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"json":          "{",
		"model":         strings.Replace(small, "WordPiece", "Unigram", 1),
		"normalizer":    strings.Replace(small, "BertNormalizer", "NFKC", 1),
		"pre-tokenizer": strings.Replace(small, "BertPreTokenizer", "Metaspace", 1),
		"unknown":       strings.Replace(small, `"unk_token":"?"`, `"unk_token":"!"`, 1),
		"id":            strings.Replace(small, `"A":2`, `"A":-2`, 1),
	} {
		if _, err := wordpiece.Parse([]byte(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func FuzzAppend(f *testing.F) {
	for _, text := range []string{"The museum opens at nine", "naïve café", "我在北京", "\xff\xfe İ ##s", "👩‍👩‍👧"} {
		f.Add(text)
	}
	tokenizer := open(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := tokenizer.Append(nil, text)
		if len(ids) > 4*utf8.RuneCountInString(text) { // a character decomposes into four at most
			t.Errorf("%d tokens of %q", len(ids), text)
		}
		for _, id := range ids {
			if id < 100 || id >= 30522 {
				t.Errorf("id %d of %q", id, text)
			}
		}
	})
}

// TestVocabulary: the lines of a vocab.txt are the tokens of a tokenizer.json.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	var file struct {
		Model struct{ Vocab map[string]int }
	}
	if err := json.Unmarshal(vocabulary(t), &file); err != nil {
		t.Fatal(err)
	}
	lines := make([]string, len(file.Model.Vocab))
	for token, id := range file.Model.Vocab {
		lines[id] = token
	}
	const text = "Crème brûlée in 東京, unbelievably [CLS] ##s"
	want := open(t).Append(nil, text)
	for _, end := range []string{"\n", "\r\n"} {
		tokenizer, err := wordpiece.ParseVocabulary([]byte(strings.Join(lines, end)+end), []byte(`{"strip_accents":null}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tokenizer.Append(nil, text)); diff != "" {
			t.Error(diff)
		}
		if id, ok := tokenizer.Special("[SEP]"); !ok || id != 102 || tokenizer.Largest() != int32(len(lines)-1) {
			t.Errorf("[SEP] is %d, %v, the largest token %d", id, ok, tokenizer.Largest())
		}
	}
}

// TestVocabularyCased: the configuration turns the normalizer's steps off.
func TestVocabularyCased(t *testing.T) {
	t.Parallel()
	vocabulary := []byte("[UNK]\nThe\nthe\ncafé\n京\n京都")
	tokenizer, err := wordpiece.ParseVocabulary(vocabulary, []byte(`{"do_lower_case":false,"tokenize_chinese_chars":false}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int32{1, 2, 3, 5}, tokenizer.Append(nil, "The the café 京都")); diff != "" {
		t.Error(diff)
	}
	for name, bad := range map[string][2]string{"no unknown": {"a\nb", ""}, "config": {"[UNK]", "{"}} {
		if _, err := wordpiece.ParseVocabulary([]byte(bad[0]), []byte(bad[1])); err == nil {
			t.Errorf("%s: parsed", name)
		}
	}
}
