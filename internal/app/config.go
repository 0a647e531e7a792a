package app

import (
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"palimpsest/internal/audit"
	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/broker"
	"palimpsest/internal/call"
	"palimpsest/internal/config"
	"palimpsest/internal/embed"
	"palimpsest/internal/erasure"
	"palimpsest/internal/httpserver"
	"palimpsest/internal/llm"
	"palimpsest/internal/pipeline"
	"palimpsest/internal/rules"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/telemetry"
	"palimpsest/services/consolidator"
	"palimpsest/services/decider"
	"palimpsest/services/extractor"
	"palimpsest/services/ingest"
	"palimpsest/services/query"
	"palimpsest/services/scheduler"
)

//go:embed embedded.yaml
var embeddedYAML []byte

const embeddedFile = "embedded.yaml"

// Config is everything that a user can set. The package that a member configures
// declares its type; Config only nests them.
type Config struct {
	// Data is the directory of the files of this process.
	Data string
	// MemoryLimit is the bound in MiB that a process keeps its own memory below as
	// long as it can, caches included; 0 for none. GOMEMLIMIT goes before it.
	MemoryLimit int
	NATS        broker.Config
	// Memory and Audit name the backends: sqlite, a file under Data; for Memory
	// also the URL of a Redis: redis://user:password@host:6379/db, or rediss://…;
	// for Audit that of a ClickHouse: clickhouse://user:password@host:9000/database,
	// or http(s)://….
	Memory string
	Audit  string
	// Redis shapes the memory store where Memory names one.
	Redis redis.Config
	// ClickHouse shapes the audit log where Audit names one.
	ClickHouse clickhouse.Config `yaml:"clickhouse"`
	// Retention is how long the audit log keeps what reports of safety and feedback
	// count.
	Retention audit.Retention
	Embedder  embed.Config
	LLM       llm.Config
	// Rules are the consolidation rules beside the shipped ones.
	Rules rules.Config
	HTTP  httpserver.Config
	Log   telemetry.LogConfig
	// Telemetry is off unless a collector is named.
	Telemetry telemetry.Config

	Pipeline     pipeline.Config
	Ingest       ingest.Config
	Scheduler    scheduler.Config
	Extractor    extractor.Config
	Decider      decider.Config
	Consolidator consolidator.Config
	Query        query.Config

	// erasures are those of the data directory, once they are opened; nil where data
	// is elsewhere.
	erasures *erasure.Book

	// settings say where each value comes from; nil where nothing was laid over the
	// defaults.
	settings *config.Settings
}

// origin is where a setting that names an engine comes from; empty for a default.
func (c Config) origin(key string) string {
	if c.settings == nil {
		return ""
	}
	origin := c.settings.Origin(key)
	if origin == config.Default || strings.HasPrefix(string(origin), embeddedFile+":") {
		return ""
	}
	return string(origin)
}

// engine is the URL that a setting names an engine by.
func (c Config) engine(key string) string {
	return map[string]string{"nats.url": c.NATS.URL, "memory": c.Memory, "audit": c.Audit}[key]
}

// backendFile is the value of memory and audit for a file of the data directory.
const backendFile = "sqlite"

// memoryFile is the memory store's file in the data directory, auditFile the
// audit log's, natsDir the broker's directory.
const (
	memoryFile = "memory.db"
	auditFile  = "audit.db"
	natsDir    = "nats"
)

func defaults() Config {
	return Config{
		Data: "./palimpsest-data",

		MemoryLimit: 1024,

		NATS:   broker.DefaultConfig(),
		Memory: "redis://127.0.0.1:6379",
		Audit:  "clickhouse://127.0.0.1:9000",
		Redis:  redis.DefaultConfig(),

		Retention: audit.DefaultRetention(),

		HTTP:  httpserver.DefaultConfig(),
		Log:   telemetry.DefaultLog(),
		Query: query.DefaultConfig(),

		Telemetry: telemetry.DefaultConfig(),
		LLM:       llm.DefaultConfig(),
		Embedder:  embed.Config{Model: embed.Static},
	}
}

// fallbacks are variables that other programs read too. Variables of Palimpsest
// take precedence.
var fallbacks = map[string]string{
	"REDIS_URL": "memory", "CLICKHOUSE_URL": "audit", "NATS_URL": "nats.url",
	"OTEL_EXPORTER_OTLP_ENDPOINT": "telemetry.otlp.endpoint", "OTEL_EXPORTER_OTLP_PROTOCOL": "telemetry.otlp.protocol",
	"OTEL_TRACES_SAMPLER_ARG": "telemetry.sampling",
	"OPENAI_API_KEY":          "llm.keys.openai", "ANTHROPIC_API_KEY": "llm.keys.anthropic", "GOOGLE_API_KEY": "llm.keys.gemini",
}

// Configuration returns that of a process with all services. Commands that connect
// to a process use it too.
func (inv *Invocation) Configuration(flags map[string]string) (*Config, *config.Settings, error) {
	return inv.configurationOf(whole(), flags)
}

// ServiceConfiguration returns that of a process with one service, by its name.
func (inv *Invocation) ServiceConfiguration(name string, flags map[string]string) (*Config, *config.Settings, error) {
	return inv.configurationOf(alone(name), flags)
}

// Reads reports whether the configuration reads a variable of the environment.
func Reads(variable string) bool {
	_, fallback := fallbacks[variable]
	return fallback || strings.HasPrefix(variable, "PALIMPSEST_")
}

// configurationOf lays embedded.yaml (for everything in one process), the
// fallbacks, the file that --config names, the environment and flags over the
// defaults.
func (inv *Invocation) configurationOf(sh target, flags map[string]string) (*Config, *config.Settings, error) {
	c := defaults()
	settings := config.Of(&c)
	if len(sh.services) == len(services) {
		if err := settings.YAML(embeddedFile, embeddedYAML); err != nil {
			return nil, nil, err
		}
	}
	if err := settings.Fallbacks(inv.Terminal().Environ, fallbacks); err != nil {
		return nil, nil, err
	}
	if inv.Flags().ConfigFile != "" {
		if err := settings.File(inv.Flags().ConfigFile); err != nil {
			return nil, nil, err
		}
	}
	environ := slices.DeleteFunc(slices.Clone(inv.Terminal().Environ), func(line string) bool {
		return strings.HasPrefix(line, call.KeyVariable+"=")
	})
	if err := settings.Env(environ); err != nil {
		return nil, nil, err
	}
	for key, value := range flags {
		if value == "" {
			continue
		}
		if err := settings.Set(key, value, "flag"); err != nil {
			return nil, nil, err
		}
	}
	c.complete()
	c.settings = settings
	return &c, settings, errors.Join(c.Validate(), sh.validate(c))
}

// complete sets the defaults. It comes last because some defaults follow from the
// user's settings.
func (c *Config) complete() {
	if list, err := c.Rules.Rules(c.modelRules()); err == nil { // Validate tells the error
		c.Scheduler.Rules, c.Extractor.Rules, c.Decider.Rules = list, list, list
	}
	c.Pipeline = c.Pipeline.WithDefaults()
	c.Ingest = c.Ingest.WithDefaults()
	c.Scheduler = c.Scheduler.WithDefaults()
	c.Extractor = c.Extractor.WithDefaults()
	c.Decider = c.Decider.WithDefaults()
	c.Consolidator = c.Consolidator.WithDefaults()
	c.Query.MaxContent, c.Query.MaxMetadata = c.Ingest.MaxContent, c.Ingest.MaxMetadata
}

// leastMemory is the smallest memory_limit, in MiB.
const leastMemory = 64

// Validate names every setting that cannot be used.
func (c Config) Validate() error {
	var errs []error
	if c.Data == "" {
		errs = append(errs, errors.New("data: must name a directory"))
	}
	if c.MemoryLimit != 0 && c.MemoryLimit < leastMemory {
		errs = append(errs, fmt.Errorf("memory_limit: %d MiB is less than %d", c.MemoryLimit, leastMemory))
	}
	errs = append(errs, c.validateBackends(), validateEmbedder(c.Embedder))
	if _, err := c.Rules.Rules(c.modelRules()); err != nil {
		errs = append(errs, err)
	}
	for _, v := range []interface{ Validate() error }{
		c.NATS, c.Log, c.LLM, c.HTTP, c.Telemetry, c.Pipeline, c.Ingest, c.Scheduler, c.Extractor, c.Decider, c.Consolidator, c.Query,
	} {
		errs = append(errs, v.Validate())
	}
	return errors.Join(errs...)
}

// dataPath is the path of a file in the data directory.
func (c *Config) dataPath(name string) string { return filepath.Join(c.Data, name) }

// local reports whether anything is kept in the data directory.
func (c Config) local() bool {
	return c.NATS.Own() || c.Memory == backendFile || c.Audit == backendFile
}
