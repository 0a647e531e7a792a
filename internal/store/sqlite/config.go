package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"palimpsest/internal/embed"
)

// The defaults of [Config].
const (
	DefaultVectorMemory = 256 << 20
	DefaultTextMemory   = 32 << 20
	outcomeLife         = 7 * 24 * time.Hour
)

// Config says where the store is and how it keeps its promises.
type Config struct {
	// Path is the database file; its directory is created. Beside it stand the
	// write-ahead log and the lock file.
	Path string
	// Synchronous is normal (default: survives the death of the process; a
	// power cut may lose the newest commits) or full (each commit is synced).
	Synchronous string
	// Embedder names the vector space of a store that has none so far. With zero
	// Dimensions the first vector stored decides. [Store.BuildSpace] changes it.
	Embedder embed.Info
	// Building marks a file under construction, which no process uses yet and which is
	// built again from the start if the construction does not end: writes return before
	// they are committed, thousands at a time, and nothing is synced to the disk before
	// [Store.Settle]. Expired rows are kept.
	Building bool
	// VectorMemory bounds the vectors kept in memory, in bytes; 0 means
	// [DefaultVectorMemory].
	VectorMemory int64
	// TextMemory bounds the posting lists kept in memory, in bytes; 0 means
	// [DefaultTextMemory]. Half as much again is for the rows that searches found.
	TextMemory int64
	// Born returns the incarnation of a scope that has no row: how often its user
	// was erased. Nil means never.
	Born func(project, user string) uint64
	// CheckAfter is how long after its opening the file is checked for damaged
	// pages, in the background; 0 means that it is not.
	CheckAfter time.Duration
	// AccessedFrom returns the earliest instant at which a fact that is put counts as accessed.
	// Who puts back old facts has lost their accesses, and they must not be pruned for
	// that. Nil means that a fact counts as accessed when it was created.
	AccessedFrom func() time.Time
	// Now is the clock of expiries; nil means time.Now.
	Now func() time.Time
	// Logger logs events that no caller sees as an error; nil disables it.
	Logger *slog.Logger
}

// Validate names the first setting that cannot be used.
func (c Config) Validate() error {
	switch {
	case c.Path == "":
		return errors.New("sqlite: path is required")
	case c.Synchronous != "" && c.Synchronous != "normal" && c.Synchronous != "full":
		return fmt.Errorf("sqlite: synchronous: %q is neither normal nor full", c.Synchronous)
	case c.CheckAfter < 0:
		return errors.New("sqlite: check after is negative")
	case c.VectorMemory < 0:
		return errors.New("sqlite: vector memory is negative")
	case c.TextMemory < 0:
		return errors.New("sqlite: text memory is negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Born == nil {
		c.Born = func(string, string) uint64 { return 0 }
	}
	if c.Synchronous == "" {
		c.Synchronous = "normal"
	}
	if c.VectorMemory == 0 {
		c.VectorMemory = DefaultVectorMemory
	}
	if c.TextMemory == 0 {
		c.TextMemory = DefaultTextMemory
	}
	if c.AccessedFrom == nil {
		c.AccessedFrom = func() time.Time { return time.Time{} }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
