package scheduler

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"palimpsest/internal/memory"
	"palimpsest/internal/rules"
	"palimpsest/pkg/events"
)

// Config of the scheduler. A zero value stands for its default.
type Config struct {
	// Rules that may be due. Default: rules.Shipped().
	Rules []memory.Rule
	// SessionIdle, by arrival time, ends a session. Default: 30 min.
	SessionIdle time.Duration
	// SwitchGrace is how long the other sessions of a scope must have been
	// silent for a new session to end them. Default: 2 min.
	SwitchGrace time.Duration
	// TickEpisodes and TickTokens bound a tick; a token is taken to be four
	// bytes. Defaults: 200 (which is also the most) and 64,000.
	TickEpisodes int
	TickTokens   int
	// Slots is how many ticks of a project may be under way, as far as a process knows.
	// Each rule is sure of half of its even share, so that one whose ticks are stuck
	// leaves room for the others. Default: 64.
	Slots int
	// Overdue is when a tick that has not been consolidated is issued again; each
	// further attempt waits twice as long, up to OverdueMost. Defaults: 60 s and
	// 1 h.
	Overdue     time.Duration
	OverdueMost time.Duration
	// Jitter spreads the scopes of a cron rule. It is at most half of the time
	// to the rule's next fire. Default: 10 min.
	Jitter time.Duration
	// Sweep is how often everything pending is looked at. Default: 1 min.
	Sweep time.Duration
}

// WithDefaults returns c with its default in each zero member.
func (c Config) WithDefaults() Config {
	if c.Rules == nil {
		c.Rules = rules.Shipped()
	}
	c.SessionIdle = cmp.Or(c.SessionIdle, 30*time.Minute)
	c.SwitchGrace = cmp.Or(c.SwitchGrace, 2*time.Minute)
	c.TickEpisodes = cmp.Or(c.TickEpisodes, memory.DefaultBounds().Episodes)
	c.TickTokens = cmp.Or(c.TickTokens, memory.DefaultBounds().Tokens)
	c.Slots = cmp.Or(c.Slots, 64)
	c.Overdue = cmp.Or(c.Overdue, time.Minute)
	c.OverdueMost = cmp.Or(c.OverdueMost, time.Hour)
	c.Jitter = cmp.Or(c.Jitter, 10*time.Minute)
	c.Sweep = cmp.Or(c.Sweep, time.Minute)
	return c
}

// Validate refuses members out of range, two rules of one id, and cron
// expressions that cannot be read or never fire.
func (c Config) Validate() error {
	c = c.WithDefaults()
	for _, m := range []struct {
		name        string
		value, most int64
	}{
		{"session_idle", int64(c.SessionIdle), int64(365 * 24 * time.Hour)},
		{"switch_grace", int64(c.SwitchGrace), int64(24 * time.Hour)},
		{"tick_episodes", int64(c.TickEpisodes), events.MaxTickEpisodes},
		{"tick_tokens", int64(c.TickTokens), 10_000_000},
		{"slots", int64(c.Slots), 100_000},
		{"overdue", int64(c.Overdue), int64(c.OverdueMost)},
		{"overdue_most", int64(c.OverdueMost), int64(7 * 24 * time.Hour)},
		{"jitter", int64(c.Jitter), int64(24 * time.Hour)},
		{"sweep", int64(c.Sweep), int64(time.Hour)},
	} {
		if m.value < 1 || m.value > m.most {
			return fmt.Errorf("scheduler: %s is outside 1 to %d: %d", m.name, m.most, m.value)
		}
	}
	_, err := c.rules()
	return err
}

// rule is one that is enabled, its cron expression read.
type rule struct {
	memory.Rule
	cron *rules.Schedule // nil for none
}

func (c Config) rules() ([]rule, error) {
	seen := make(map[string]bool)
	var all []rule
	for _, r := range c.Rules {
		switch {
		case r.ID == "":
			return nil, errors.New("scheduler: a rule has no id")
		case seen[r.ID]:
			return nil, fmt.Errorf("scheduler: two rules have the id %q", r.ID)
		}
		seen[r.ID] = true
		compiled := rule{Rule: r}
		if r.Cadence.Cron != "" {
			s, err := rules.ParseCron(r.Cadence.Cron, r.Cadence.Location)
			if err != nil {
				return nil, fmt.Errorf("scheduler: rule %s: %w", r.ID, err)
			}
			compiled.cron = s
		}
		all = append(all, compiled)
	}
	return all, nil
}
