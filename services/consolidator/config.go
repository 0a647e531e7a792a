package consolidator

import (
	"cmp"
	"fmt"
	"time"
)

// Config of the consolidator. A zero value stands for its default.
type Config struct {
	// Conflicts bounds how often one delivery rolls its scope forward and is
	// judged again, before it is left to a redelivery. Default: 8.
	Conflicts int
	// SinkSize and SinkWait cut the batches of the audit log: as many effects or
	// after that long. Defaults: 1,000 and 1 s.
	SinkSize int
	SinkWait time.Duration
}

// WithDefaults returns c with its default in each zero member.
func (c Config) WithDefaults() Config {
	c.Conflicts = cmp.Or(c.Conflicts, 8)
	c.SinkSize = cmp.Or(c.SinkSize, 1000)
	c.SinkWait = cmp.Or(c.SinkWait, time.Second)
	return c
}

// Validate refuses members out of range.
func (c Config) Validate() error {
	c = c.WithDefaults()
	for _, m := range []struct {
		name        string
		value, most int64
	}{
		{"conflicts", int64(c.Conflicts), 1000},
		{"sink_size", int64(c.SinkSize), 100_000},
		{"sink_wait", int64(c.SinkWait), int64(time.Minute)},
	} {
		if m.value < 1 || m.value > m.most {
			return fmt.Errorf("consolidator: %s: %d is outside 1 to %d", m.name, m.value, m.most)
		}
	}
	return nil
}
