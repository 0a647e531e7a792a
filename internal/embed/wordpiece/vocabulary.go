package wordpiece

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ParseVocabulary reads a vocab.txt, which has a token on each line, and its
// tokenizer_config.json, which may be empty. It is the older form of a
// tokenizer.json.
func ParseVocabulary(vocabulary, config []byte) (*Tokenizer, error) {
	var c struct {
		Lower   *bool `json:"do_lower_case"`
		Chinese *bool `json:"tokenize_chinese_chars"`
		Accents *bool `json:"strip_accents"`
	}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &c); err != nil {
			return nil, fmt.Errorf("tokenizer: %w", err)
		}
	}
	var f file
	f.Normalizer.Type, f.PreTokenizer.Type = "BertNormalizer", "BertPreTokenizer"
	f.Normalizer.CleanText = true
	f.Normalizer.Lowercase = c.Lower == nil || *c.Lower
	f.Normalizer.HandleChineseChars = c.Chinese == nil || *c.Chinese
	f.Normalizer.StripAccents = c.Accents
	f.Model.Type, f.Model.ContinuingSubwordPrefix, f.Model.UnkToken = "WordPiece", "##", "[UNK]"
	f.Model.Vocab = map[string]int32{}
	id := int32(0)
	for line := range strings.Lines(string(vocabulary)) {
		f.Model.Vocab[strings.TrimRight(line, "\r\n")] = id
		id++
	}
	for _, token := range []string{"[PAD]", f.Model.UnkToken, "[CLS]", "[SEP]", "[MASK]"} {
		if id, ok := f.Model.Vocab[token]; ok {
			f.AddedTokens = append(f.AddedTokens, addedToken{ID: id, Content: token, Special: true})
		}
	}
	return f.tokenizer()
}
