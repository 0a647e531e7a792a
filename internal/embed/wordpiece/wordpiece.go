package wordpiece

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Tokenizer splits texts. It is safe for concurrent use.
type Tokenizer struct {
	normalizer normalizer
	first      map[string]int32 // pieces that begin a word
	rest       map[string]int32 // pieces within a word, without the prefix
	longest    int              // bytes of the longest piece
	maxWord    int              // characters of the longest word that has pieces
	unknown    int32
	special    map[string]int32
}

// file is the part of tokenizer.json that is read.
type file struct {
	AddedTokens []addedToken `json:"added_tokens"`
	Normalizer  struct {
		Type               string
		CleanText          bool  `json:"clean_text"`
		HandleChineseChars bool  `json:"handle_chinese_chars"`
		StripAccents       *bool `json:"strip_accents"`
		Lowercase          bool
	}
	PreTokenizer struct{ Type string } `json:"pre_tokenizer"`
	Model        struct {
		Type                    string
		UnkToken                string `json:"unk_token"`
		ContinuingSubwordPrefix string `json:"continuing_subword_prefix"`
		MaxInputCharsPerWord    int    `json:"max_input_chars_per_word"`
		Vocab                   map[string]int32
	}
}

type addedToken struct {
	ID      int32
	Content string
	Special bool
}

// Parse reads a tokenizer.json. Another model than WordPiece, or other steps
// before it than BERT's, is an error.
func Parse(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return f.tokenizer()
}

func (f *file) tokenizer() (*Tokenizer, error) {
	// Older files leave the type of the model out.
	if f.Model.Type != "WordPiece" && (f.Model.Type != "" || f.Model.ContinuingSubwordPrefix == "") {
		return nil, fmt.Errorf("tokenizer: model %q is not WordPiece", f.Model.Type)
	}
	if f.Normalizer.Type != "BertNormalizer" || f.PreTokenizer.Type != "BertPreTokenizer" {
		return nil, fmt.Errorf("tokenizer: normalizer %q and pre-tokenizer %q are not BERT's", f.Normalizer.Type, f.PreTokenizer.Type)
	}
	unknown, ok := f.Model.Vocab[f.Model.UnkToken]
	if !ok {
		return nil, errors.New("tokenizer: no token for the unknown")
	}
	n := normalizer{clean: f.Normalizer.CleanText, chinese: f.Normalizer.HandleChineseChars, accents: f.Normalizer.Lowercase, lower: f.Normalizer.Lowercase}
	if f.Normalizer.StripAccents != nil {
		n.accents = *f.Normalizer.StripAccents
	}
	t := &Tokenizer{normalizer: n, unknown: unknown, maxWord: f.Model.MaxInputCharsPerWord, special: map[string]int32{}}
	if t.maxWord <= 0 {
		t.maxWord = 100
	}
	for _, added := range f.AddedTokens {
		if added.Special {
			t.special[added.Content] = added.ID
		}
	}
	return t, t.fill(f.Model.Vocab, f.Model.ContinuingSubwordPrefix)
}

func (t *Tokenizer) fill(vocab map[string]int32, prefix string) error {
	t.first, t.rest = make(map[string]int32, len(vocab)), make(map[string]int32, len(vocab)/4)
	for token, id := range vocab {
		if id < 0 {
			return fmt.Errorf("tokenizer: token %q has the id %d", token, id)
		}
		if _, special := t.special[token]; special {
			continue
		}
		if piece, ok := strings.CutPrefix(token, prefix); ok && prefix != "" && piece != "" {
			t.rest[piece] = id
		} else {
			t.first[token] = id
		}
		t.longest = max(t.longest, len(token))
	}
	return nil
}

// Largest is the largest id of a token.
func (t *Tokenizer) Largest() (id int32) {
	for _, ids := range []map[string]int32{t.first, t.rest, t.special} {
		for _, i := range ids {
			id = max(id, i)
		}
	}
	return max(id, t.unknown)
}

// Unknown is the id that stands for a word without pieces.
func (t *Tokenizer) Unknown() int32 { return t.unknown }

// Word returns the id of a normalised word that is one token.
func (t *Tokenizer) Word(word string) (id int32, ok bool) {
	id, ok = t.first[word]
	return id, ok
}

// Special returns the id of a special token, as [CLS].
func (t *Tokenizer) Special(token string) (id int32, ok bool) {
	id, ok = t.special[token]
	return id, ok
}

// Append appends the ids of text's tokens to ids, without special tokens around
// them.
func (t *Tokenizer) Append(ids []int32, text string) []int32 {
	t.normalizer.words(text, func(word []byte) { ids = t.appendWord(ids, word) })
	return ids
}

// appendWord appends the longest pieces from the left, or the unknown token for
// the whole word.
func (t *Tokenizer) appendWord(ids []int32, word []byte) []int32 {
	if id, ok := t.first[string(word)]; ok {
		return append(ids, id)
	}
	if len(word) > t.maxWord && utf8.RuneCount(word) > t.maxWord {
		return append(ids, t.unknown)
	}
	start := len(ids)
	for pieces := t.first; len(word) > 0; pieces = t.rest {
		end := min(len(word), t.longest)
		id, ok := pieces[string(word[:end])]
		for !ok && end > 1 {
			end--
			id, ok = pieces[string(word[:end])]
		}
		if !ok {
			return append(ids[:start], t.unknown)
		}
		ids, word = append(ids, id), word[end:]
	}
	return ids
}
