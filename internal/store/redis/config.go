package redis

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"palimpsest/internal/embed"
)

// outcomeLife is how long the outcomes of a request are kept.
const outcomeLife = 7 * 24 * time.Hour

// VectorIndex is how vectors are indexed.
type VectorIndex string

// The vector indexes. Both are exact within one fact scope.
const (
	// Flat compares with every vector that passes the filter.
	Flat VectorIndex = "flat"
	// HNSW walks a graph where a read spans scopes: approximate there, and each
	// write costs about half a millisecond of the server's one thread.
	HNSW VectorIndex = "hnsw"
)

// Config says where the store is and how it keeps its promises.
type Config struct {
	// URL names the server: redis://user:password@host:port/db. With ?addr=host:port for
	// each further node it names a cluster. With ?master_name=NAME it names the
	// Sentinels that monitor the server: further ones as addr, and our account on them
	// as sentinel_username and sentinel_password. rediss:// is over TLS; ?ca=FILE is the
	// authority that signs the server's certificate, cert=FILE&key=FILE our own
	// certificate.
	URL string `yaml:"-"`
	// Namespace begins every key; empty means "pal".
	Namespace string
	// Building marks the store as the next generation, empty, which no other process
	// uses before [Store.Promote].
	Building bool `yaml:"-"`
	// Embedder names the vector space of a generation that has none so far. With zero
	// Dimensions the first vector stored decides. [Store.BuildSpace] changes it.
	Embedder embed.Info `yaml:"-"`
	// Vectors is the kind of vector index that a new generation gets; empty means
	// [Flat].
	Vectors VectorIndex
	// M, EFConstruction and EFRuntime shape an [HNSW] index; 0 means the default.
	M, EFConstruction, EFRuntime int
	// QueryTimeout bounds one search; 0 means 5 s. What the
	// server cuts short is an error, never a shorter answer.
	QueryTimeout time.Duration
	// Pulse is how often the store looks whether the server forgot something; 0
	// means 8 s.
	Pulse time.Duration
	// AccessedFrom returns the earliest instant at which a fact that is put counts as accessed.
	// Who puts back old facts has lost their accesses, and they must not be pruned for
	// that. Nil means that a fact counts as accessed when it was created.
	AccessedFrom func() time.Time `yaml:"-"`
	hook         goredis.Hook     // of a test; nil for none
	// Born returns the incarnation of a scope that no effect was applied to: how often
	// its user was erased. Nil means never.
	Born func(project, user string) uint64
	// Now is the clock of expiries; nil means time.Now.
	Now func() time.Time
	// Logger logs events that no caller sees as an error; nil disables it.
	Logger *slog.Logger
}

// DefaultConfig returns the settings that ship.
func DefaultConfig() Config {
	return Config{
		Namespace: "pal", Vectors: Flat, M: 16, EFConstruction: 200, EFRuntime: 512,
		QueryTimeout: 5 * time.Second, Pulse: 8 * time.Second,
	}
}

// Validate names the first setting that cannot be used.
func (c Config) Validate() error {
	if c.URL == "" {
		return errors.New("redis: url is required")
	}
	if _, err := parseTarget(c.URL); err != nil {
		return err
	}
	switch {
	case strings.ContainsAny(c.Namespace, "{}:"):
		return fmt.Errorf("redis: namespace: %q holds a brace or a colon", c.Namespace)
	case c.Vectors != "" && c.Vectors != Flat && c.Vectors != HNSW:
		return fmt.Errorf("redis: vectors: %q is neither flat nor hnsw", c.Vectors)
	case c.M < 0 || c.EFConstruction < 0 || c.EFRuntime < 0:
		return errors.New("redis: vectors: a setting is negative")
	case c.QueryTimeout < 0:
		return errors.New("redis: query timeout is negative")
	case c.Pulse < 0:
		return errors.New("redis: pulse is negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	d := DefaultConfig()
	c.Namespace = cmp.Or(c.Namespace, d.Namespace)
	c.Vectors = cmp.Or(c.Vectors, d.Vectors)
	c.M = cmp.Or(c.M, d.M)
	c.EFConstruction = cmp.Or(c.EFConstruction, d.EFConstruction)
	c.EFRuntime = cmp.Or(c.EFRuntime, d.EFRuntime)
	c.QueryTimeout = cmp.Or(c.QueryTimeout, d.QueryTimeout)
	c.Pulse = cmp.Or(c.Pulse, d.Pulse)
	if c.AccessedFrom == nil {
		c.AccessedFrom = func() time.Time { return time.Time{} }
	}
	if c.Born == nil {
		c.Born = func(string, string) uint64 { return 0 }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
