package query

import (
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	if c := (Config{}); c.maxContent() != 256<<10 || c.maxMetadata() != 16<<10 {
		t.Errorf("bounds of the zero value: %d, %d", c.maxContent(), c.maxMetadata())
	}
	for name, change := range map[string]func(*Config){
		"project":      func(c *Config) { c.Project = "" },
		"query.proj":   func(c *Config) { c.Project = strings.Repeat("x", 257) },
		"wait":         func(c *Config) { c.Wait = 0 },
		"max_wait":     func(c *Config) { c.MaxWait = c.Wait - 1 },
		"fresh":        func(c *Config) { c.Fresh = -1 },
		"max_content":  func(c *Config) { c.MaxContent = -1 },
		"max_metadata": func(c *Config) { c.MaxMetadata = -1 },
		"rrf":          func(c *Config) { c.Search.K = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := New(c, Deps{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
