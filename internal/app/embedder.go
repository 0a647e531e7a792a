package app

import (
	"fmt"
	"net/url"

	"palimpsest/internal/embed"
	"palimpsest/internal/embed/local"
	"palimpsest/internal/embed/static"
)

// Embedder says what turns texts into vectors. All processes on one memory
// store need the same.
type Embedder struct {
	// Model is hashed (words and their parts), static (meaning, in English, from
	// a table in this program), or file:///… (a directory in the layout of
	// model2vec).
	Model string
}

// The values of embedder.model that this program provides.
const (
	modelHashed = "hashed"
	modelStatic = "static"
)

// Validate names a model that there is none of.
func (c Embedder) Validate() error {
	if c.Model == modelHashed || c.Model == modelStatic {
		return nil
	}
	_, err := c.directory()
	return err
}

// directory is the one that Model names.
func (c Embedder) directory() (string, error) {
	u, err := url.Parse(c.Model)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return "", fmt.Errorf("embedder.model: %q is none of %s, %s, file:///…", c.Model, modelHashed, modelStatic)
	}
	return u.Path, nil
}

// open returns the embedder that Model names.
func (c Embedder) open() (embed.Embedder, error) {
	switch c.Model {
	case modelHashed:
		return local.New(), nil
	case modelStatic:
		return static.New()
	}
	dir, err := c.directory()
	if err != nil {
		return nil, err
	}
	e, err := static.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("embedder.model: %w", err)
	}
	return e, nil
}
