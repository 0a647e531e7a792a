package ingest

import (
	"cmp"
	"fmt"
	"time"
)

// Config of ingest. A zero value stands for its default.
type Config struct {
	// MaxContent and MaxMetadata bound an episode's content (and its prompt) and
	// the JSON of its metadata, in bytes. Defaults: 256 KiB and 16 KiB.
	MaxContent  int
	MaxMetadata int
	// MaxAhead is how long after its arrival an episode may claim to happen; a
	// later time is set to the arrival. Default: 5 min.
	MaxAhead time.Duration
	// EmbedInterval is how often the store is asked for rows without a vector.
	// While there are none, it is asked less often, down to every 2 s.
	// Default: 50 ms.
	EmbedInterval time.Duration
	// EmbedBatch texts are embedded in one call, EmbedParallel calls at a time.
	// Defaults: 64 and 4.
	EmbedBatch    int
	EmbedParallel int
	// EmbedBackoff is the longest pause after the embedder fails; the first is
	// 100 ms, each further one twice as long. Default: 30 s.
	EmbedBackoff time.Duration
}

const firstBackoff = 100 * time.Millisecond

// idleMost is the longest time between two queries for rows without a vector.
// Episodes of the process wake it; facts come from others.
const idleMost = 2 * time.Second

// WithDefaults returns c with its default in each zero member.
func (c Config) WithDefaults() Config {
	c.MaxContent = cmp.Or(c.MaxContent, 256<<10)
	c.MaxMetadata = cmp.Or(c.MaxMetadata, 16<<10)
	c.MaxAhead = cmp.Or(c.MaxAhead, 5*time.Minute)
	c.EmbedInterval = cmp.Or(c.EmbedInterval, 50*time.Millisecond)
	c.EmbedBatch = cmp.Or(c.EmbedBatch, 64)
	c.EmbedParallel = cmp.Or(c.EmbedParallel, 4)
	c.EmbedBackoff = cmp.Or(c.EmbedBackoff, 30*time.Second)
	return c
}

// Validate refuses members that are negative or beyond what a message of the
// pipeline can carry.
func (c Config) Validate() error {
	c = c.WithDefaults()
	for _, m := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"max_content", int64(c.MaxContent), 4 << 20},
		{"max_metadata", int64(c.MaxMetadata), 1 << 20},
		{"max_ahead", int64(c.MaxAhead), int64(24 * time.Hour)},
		{"embed_interval", int64(c.EmbedInterval), int64(time.Hour)},
		{"embed_batch", int64(c.EmbedBatch), 4096},
		{"embed_parallel", int64(c.EmbedParallel), 256},
		{"embed_backoff", int64(c.EmbedBackoff), int64(time.Hour)},
	} {
		if m.value < 1 || m.value > m.most {
			return fmt.Errorf("ingest: %s is outside 1 to %d: %d", m.name, m.most, m.value)
		}
	}
	return nil
}
