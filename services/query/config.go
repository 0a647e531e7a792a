package query

import (
	"errors"
	"time"

	"palimpsest/internal/retrieval"
	"palimpsest/pkg/scope"
)

// Config is what the user sets.
type Config struct {
	// Project of callers that name none.
	Project string `yaml:"project"`
	// Wait is how long a caller who waits is kept by default; MaxWait at most.
	Wait    time.Duration `yaml:"wait"`
	MaxWait time.Duration `yaml:"max_wait"`
	// Fresh is how long a read waits for the write its token names.
	Fresh time.Duration `yaml:"fresh"`
	// AllowReset lets an admin erase a whole project by one request.
	AllowReset bool `yaml:"allow_reset"`
	// MaxContent and MaxMetadata bound a message's content and the JSON of its
	// metadata, in bytes; they must be ingest's, which has the last word, and
	// are no settings of their own. 0 means 256 KiB and 16 KiB.
	MaxContent  int `yaml:"-"`
	MaxMetadata int `yaml:"-"`
	// Incognito takes incognito messages, which only the memory of this process holds.
	// It must be off where other processes answer too.
	Incognito bool `yaml:"-"`
	// Heartbeat is how often who follows AUDIT hears that the connection lives,
	// while there is nothing else to say; 0 means 15 s.
	Heartbeat time.Duration    `yaml:"-"`
	Search    retrieval.Config `yaml:"search"`
}

// DefaultConfig returns the settings that ship.
func DefaultConfig() Config {
	return Config{
		Project: scope.DefaultProject, Wait: 30 * time.Second, MaxWait: 300 * time.Second,
		Fresh: 2 * time.Second, MaxContent: defaultMaxContent, MaxMetadata: defaultMaxMetadata,
		Search: retrieval.DefaultConfig(),
	}
}

const (
	defaultMaxContent  = 256 << 10
	defaultMaxMetadata = 16 << 10
)

// defaultHeartbeat is below the minute after which proxies cut what is silent.
const defaultHeartbeat = 15 * time.Second

func (c Config) heartbeat() time.Duration {
	if c.Heartbeat == 0 {
		return defaultHeartbeat
	}
	return c.Heartbeat
}

func (c Config) maxContent() int {
	if c.MaxContent == 0 {
		return defaultMaxContent
	}
	return c.MaxContent
}

func (c Config) maxMetadata() int {
	if c.MaxMetadata == 0 {
		return defaultMaxMetadata
	}
	return c.MaxMetadata
}

// Validate refuses settings that cannot answer.
func (c Config) Validate() error {
	switch {
	case c.Project == "":
		return errors.New("query.project must not be empty")
	case scope.Selector{Project: c.Project}.Validate() != nil:
		return errors.New("query.project must be a valid identifier")
	case c.Wait <= 0 || c.MaxWait < c.Wait:
		return errors.New("query.wait must be above 0 and at most query.max_wait")
	case c.Fresh < 0:
		return errors.New("query.fresh must not be negative")
	case c.Heartbeat < 0:
		return errors.New("heartbeat must not be negative")
	case c.MaxContent < 0 || c.MaxMetadata < 0:
		return errors.New("max_content and max_metadata must not be negative")
	}
	return c.Search.Validate()
}
