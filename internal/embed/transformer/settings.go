package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"palimpsest/internal/embed/kernel"
)

// The files of a model.
const (
	configFile   = "config.json"
	weightsFile  = "model.safetensors"
	wordsFile    = "tokenizer.json"
	vocabFile    = "vocab.txt"
	casingFile   = "tokenizer_config.json"
	sentenceFile = "sentence_bert_config.json"
	modulesFile  = "modules.json"
)

// settings is what the JSON files of a model say of its shape. It is hashed into
// the name of the space.
type settings struct {
	ModelType  string  `json:"model_type"`
	Hidden     int     `json:"hidden_size"`
	Layers     int     `json:"num_hidden_layers"`
	Heads      int     `json:"num_attention_heads"`
	Between    int     `json:"intermediate_size"`
	Activation string  `json:"hidden_act"`
	Positions  int     `json:"max_position_embeddings"`
	Position   string  `json:"position_embedding_type"`
	Epsilon    float32 `json:"layer_norm_eps"`
	Vocabulary int     `json:"vocab_size"`
	Types      int     `json:"type_vocab_size"`

	longest int  // tokens of a sequence, with the two around the text
	first   bool // the vector is that of the first token, else the mean of all
}

// headSize is the number of dimensions of an attention head.
func (s settings) headSize() int { return s.Hidden / s.Heads }

// Type returns the model_type of a model's config.json, "" if it has none or there
// is no such file.
func Type(dir string) (string, error) {
	var c struct {
		ModelType string `json:"model_type"`
	}
	err := readJSON(dir, configFile, &c)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return c.ModelType, err
}

func readSettings(dir string) (settings, error) {
	s := settings{Activation: "gelu", Position: "absolute", Epsilon: 1e-12, Types: 2}
	if err := readJSON(dir, configFile, &s); err != nil {
		return s, err
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("%s: %w", configFile, err)
	}
	if err := s.readLongest(dir); err != nil {
		return s, err
	}
	return s, s.readPooling(dir)
}

// check refuses what this package does not compute.
func (s settings) check() error {
	switch {
	case s.ModelType != "bert":
		return fmt.Errorf("model_type %q is not supported, only bert", s.ModelType)
	case s.Activation != "gelu":
		return fmt.Errorf("hidden_act %q is not supported, only gelu", s.Activation)
	case s.Position != "absolute":
		return fmt.Errorf("position_embedding_type %q is not supported, only absolute", s.Position)
	case s.Hidden <= 0 || s.Layers <= 0 || s.Heads <= 0 || s.Between <= 0 || s.Vocabulary <= 0 || s.Types <= 0 || s.Positions < 3:
		return errors.New("a size is missing or too small")
	case s.Hidden%s.Heads != 0:
		return fmt.Errorf("hidden_size %d is not a multiple of %d num_attention_heads", s.Hidden, s.Heads)
	case s.Hidden%kernel.Lanes != 0:
		return fmt.Errorf("hidden_size %d is not a multiple of %d", s.Hidden, kernel.Lanes)
	}
	return nil
}

// readLongest reads the length that a text is cut to.
func (s *settings) readLongest(dir string) error {
	var c struct {
		Longest int `json:"max_seq_length"`
	}
	if err := readJSON(dir, sentenceFile, &c); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if s.longest = s.Positions; c.Longest != 0 {
		s.longest = min(c.Longest, s.Positions)
	}
	if s.longest < 3 {
		return fmt.Errorf("%s: max_seq_length %d leaves no room for a text", sentenceFile, c.Longest)
	}
	return nil
}

// readPooling reads which modules follow the encoder. A model without such a list
// takes the mean.
func (s *settings) readPooling(dir string) error {
	var modules []struct{ Path, Type string }
	if err := readJSON(dir, modulesFile, &modules); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, m := range modules {
		switch kind := m.Type[strings.LastIndexByte(m.Type, '.')+1:]; kind {
		case "Transformer", "Normalize": // all vectors are normalised
		case "Pooling":
			if err := s.readMode(dir, filepath.Join(m.Path, configFile)); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s: module %q is not supported", modulesFile, kind)
		}
	}
	return nil
}

func (s *settings) readMode(dir, name string) error {
	var modes map[string]any
	if err := readJSON(dir, name, &modes); err != nil {
		return err
	}
	for mode, on := range modes {
		if !strings.HasPrefix(mode, "pooling_mode_") || on != true {
			continue
		}
		switch mode {
		case "pooling_mode_mean_tokens":
		case "pooling_mode_cls_token":
			s.first = true
		default:
			return fmt.Errorf("%s: %s is not supported, only mean_tokens and cls_token", name, mode)
		}
	}
	if s.first && modes["pooling_mode_mean_tokens"] == true {
		return fmt.Errorf("%s: two modes together are not supported", name)
	}
	return nil
}

func readJSON(dir, name string, into any) error {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
