package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmbedderDirectory: the configuration of a model decides what opens it, and
// an error names the setting, the file and what is wrong with it.
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
		_, err := Embedder{Model: "file://" + dir}.open()
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; want %q in it", name, err, want)
			}
		}
	}
}
