package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"palimpsest/internal/embed"
)

// TestEmbedderDirectory: the configuration of a model decides which embedder opens
// it, and an error names the setting, the file and the fault.
func TestEmbedderDirectory(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config string
		want   []string
	}{
		"no configuration": {"", []string{"embedder.model", "static embedder", "model.safetensors"}},
		"model2vec":        {`{"model_type":"model2vec"}`, []string{"embedder.model", "static embedder", "model.safetensors"}},
		"another":          {`{"model_type":"t5"}`, []string{"embedder.model", "transformer", `model_type "t5"`}},
		"bert":             {`{"model_type":"bert"}`, []string{"embedder.model", "transformer", "config.json: a size is missing"}},
		"not JSON":         {`{`, []string{"embedder.model", "config.json"}},
	} {
		dir := t.TempDir()
		if c.config != "" {
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := openEmbedder(embed.Config{Model: "file://" + dir})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q in it", name, err, want)
			}
		}
	}
}

// TestEmbedderEndpoint: an endpoint needs the dimensions of its model, and opening it
// calls nothing.
func TestEmbedderEndpoint(t *testing.T) {
	t.Parallel()
	c := embed.Config{Model: "openai:nomic-embed-text", BaseURL: "http://127.0.0.1:1/v1", Dimensions: 768}
	e, err := openEmbedder(c)
	if err != nil || validateEmbedder(c) != nil || e.Info().Name != c.Model || e.Info().Dimensions != 768 {
		t.Errorf("open: %v, Validate: %v", err, validateEmbedder(c))
	}
	for name, wrong := range map[string]embed.Config{
		"dimensions": {Model: c.Model, BaseURL: c.BaseURL},
		"model":      {Model: "openai:", Dimensions: 768},
		"host":       {Model: c.Model, BaseURL: "localhost", Dimensions: 768},
	} {
		if err := validateEmbedder(wrong); err == nil || !strings.Contains(err.Error(), "embedder: openai: ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
