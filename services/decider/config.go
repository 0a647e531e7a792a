package decider

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"palimpsest/internal/decide"
	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
)

// DefaultDecider names the decider of rules that name none.
const DefaultDecider = "rules"

// Config of the decider. A zero value stands for its default.
type Config struct {
	// Rules are the consolidation rules of the installation; a batch of a rule
	// that is not among them may emit all kinds. Default: rules.Shipped.
	Rules []memory.Rule
	// Decider names the implementation for rules that name none. Default:
	// [DefaultDecider].
	Decider string
	// SafetyMarkers are the phrases that drop a candidate. Default:
	// decide.DefaultSafetyMarkers.
	SafetyMarkers []string
	// Sensitive says what becomes of a statement on health and the like that a user
	// made outright: commit, hold or never for all projects, PROJECT=commit and so on
	// for one. Default: commit.
	Sensitive []string
	// HoldFor is how long the write policy holds a candidate whose session says no
	// more, 1 min to 30 days. Default: 24 h.
	HoldFor time.Duration `yaml:"hold_for"`
	// Decay is λ, the rate per day^0.8 at which the confidence of new facts decays: a
	// rate for all kinds, KIND=rate for one; 0 for never. Default: 0.1, summary=0.
	Decay []string
	// Churn is the breaker against runaway updates.
	Churn Churn
}

// treatments reads [Config.Sensitive].
func (c Config) treatments() (func(project string) decide.Sensitive, error) {
	all, of := decide.SensitiveCommit, map[string]decide.Sensitive{}
	for _, entry := range c.Sensitive {
		project, mode, named := strings.Cut(entry, "=")
		if !named {
			mode = entry
		}
		treat := decide.Sensitive(mode)
		switch {
		case treat != decide.SensitiveCommit && treat != decide.SensitiveHold && treat != decide.SensitiveNever:
			return nil, fmt.Errorf("decider: sensitive: %q is neither commit, hold nor never", mode)
		case !named:
			all = treat
		case project == "":
			return nil, fmt.Errorf("decider: sensitive: %q names no project", entry)
		default:
			of[project] = treat
		}
	}
	return func(project string) decide.Sensitive {
		if treat, ok := of[project]; ok {
			return treat
		}
		return all
	}, nil
}

// Churn bounds how often one fact changes. A candidate beyond that is held until
// the window has room or a caller releases it. Commands that name the fact (correct,
// confirm, restore, delete) are not bounded.
type Churn struct {
	// Limit is how many changes of one fact within Window are let through, 1 to
	// 1,000,000. Default: 20.
	Limit int
	// Window is 100 ms to 30 days. Default: 1 h.
	Window time.Duration
}

// WithDefaults returns c with its default in each zero member.
func (c Config) WithDefaults() Config {
	if c.Rules == nil {
		c.Rules = rules.Shipped()
	}
	if c.Decider == "" {
		c.Decider = DefaultDecider
	}
	if c.Sensitive == nil {
		c.Sensitive = []string{string(decide.SensitiveCommit)}
	}
	if c.SafetyMarkers == nil {
		c.SafetyMarkers = decide.DefaultSafetyMarkers()
	}
	if c.Decay == nil {
		c.Decay = []string{strconv.FormatFloat(memory.DefaultDecayRate, 'g', -1, 64)}
	}
	c.HoldFor = cmp.Or(c.HoldFor, 24*time.Hour)
	c.Churn.Limit = cmp.Or(c.Churn.Limit, 20)
	c.Churn.Window = cmp.Or(c.Churn.Window, time.Hour)
	return c
}

// Validate refuses rules without an id, rules of the same id, and members out
// of range.
func (c Config) Validate() error {
	c = c.WithDefaults()
	if _, err := c.treatments(); err != nil {
		return err
	}
	if _, err := c.rates(); err != nil {
		return err
	}
	if d := c.HoldFor; d < time.Minute || d > 30*24*time.Hour {
		return fmt.Errorf("decider: hold_for: %v is outside 1m to 720h", d)
	}
	if n := c.Churn.Limit; n < 1 || n > 1_000_000 {
		return fmt.Errorf("decider: churn.limit: %d is outside 1 to 1000000", n)
	}
	if w := c.Churn.Window; w < 100*time.Millisecond || w > 30*24*time.Hour {
		return fmt.Errorf("decider: churn.window: %v is outside 100ms to 720h", w)
	}
	seen := map[string]bool{}
	for _, r := range c.Rules {
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
