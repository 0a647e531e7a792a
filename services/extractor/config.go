package extractor

import (
	"fmt"

	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
)

// Config of the extractor. A zero value stands for its default.
type Config struct {
	// Extractor is the one used by rules that name none; default "rulepack".
	Extractor string
	// Summaries makes rules that read a whole session write a summary of it at its
	// end, without a model.
	Summaries bool
	// Rules are the enabled consolidation rules; default rules.Shipped(). The
	// rules add and verbatim are known without being listed.
	Rules []memory.Rule
}

// WithDefaults returns c with its default in each zero member.
func (c Config) WithDefaults() Config {
	if c.Extractor == "" {
		c.Extractor = "rulepack"
	}
	if c.Rules == nil {
		c.Rules = rules.Shipped()
	}
	return c
}

// Validate refuses rules without an id and ids used twice.
func (c Config) Validate() error {
	seen := make(map[string]bool, len(c.Rules))
	for _, r := range c.Rules {
		if r.ID == "" {
			return fmt.Errorf("extractor: a rule has no id")
		}
		if seen[r.ID] {
			return fmt.Errorf("extractor: rule %s is listed twice", r.ID)
		}
		seen[r.ID] = true
	}
	return nil
}
