package embed

import (
	"fmt"
	"net/url"
	"strings"
)

// Config says what turns texts into vectors. All processes on one memory store need the
// same.
type Config struct {
	// Model is hashed (words and their parts), static (meaning, in English, from
	// a table in this program), file:///… (a directory with a BERT model in the
	// layout of sentence-transformers, or a table in that of model2vec), or
	// openai:MODEL (a model at an endpoint with OpenAI's embeddings format).
	Model string
	// BaseURL, Key and Dimensions are those of an endpoint and its model; without a
	// BaseURL it is OpenAI's.
	BaseURL    string
	Key        string `secret:"true"`
	Dimensions int
}

// The kinds of a Config.
const (
	Hashed    = "hashed"
	Static    = "static"
	Directory = "file"
	Remote    = "openai"
)

// Kind returns the kind of the embedder, and the path of a directory or the name of a
// model at an endpoint. An unknown kind is empty.
func (c Config) Kind() (kind, name string) {
	if c.Model == Hashed || c.Model == Static {
		return c.Model, ""
	}
	if model, ok := strings.CutPrefix(c.Model, Remote+":"); ok {
		return Remote, model
	}
	u, err := url.Parse(c.Model)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", ""
	}
	return Directory, u.Path
}

// Validate refuses a model of no kind.
func (c Config) Validate() error {
	if kind, _ := c.Kind(); kind == "" {
		return fmt.Errorf("embedder.model: %q is none of %s, %s, file:///…, %s:MODEL", c.Model, Hashed, Static, Remote)
	}
	return nil
}
