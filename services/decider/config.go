package decider

import (
	"fmt"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
)

// DefaultDecider names the decider of rules that name none.
const DefaultDecider = "rules"

// Config of the decider. A zero value stands for its default.
type Config struct {
	// Rules are the consolidation rules of the installation; a batch of a rule
	// that is not among them may emit all kinds. Default: memory.Shipped.
	Rules []memory.Rule
	// Decider names the implementation for rules that name none. Default:
	// [DefaultDecider].
	Decider string
	// SafetyMarkers are the phrases that drop a candidate. Default:
	// decide.DefaultSafetyMarkers.
	SafetyMarkers []string
}

// WithDefaults returns c with its default in each zero member.
func (c Config) WithDefaults() Config {
	if c.Rules == nil {
		c.Rules = memory.Shipped()
	}
	if c.Decider == "" {
		c.Decider = DefaultDecider
	}
	if c.SafetyMarkers == nil {
		c.SafetyMarkers = decide.DefaultSafetyMarkers()
	}
	return c
}

// Validate refuses rules without an id and rules of the same id.
func (c Config) Validate() error {
	seen := map[string]bool{}
	for _, r := range c.WithDefaults().Rules {
		switch {
		case r.ID == "":
			return fmt.Errorf("decider: rules: a rule has no id")
		case seen[r.ID]:
			return fmt.Errorf("decider: rules: %q is there twice", r.ID)
		}
		seen[r.ID] = true
	}
	return nil
}
