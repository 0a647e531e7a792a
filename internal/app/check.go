package app

import (
	"context"
	"errors"

	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/doctor"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
)

// Check checks the configuration, and unless offline the servers that it names. It
// changes nothing anywhere.
func (inv *Invocation) Check(offline bool) (out Checked, err error) {
	cfg, _, err := inv.Configuration(nil)
	if err != nil {
		return out, err
	}
	if err := doctor.Writable(cfg.Data); err != nil {
		return out, err
	}
	if _, err := cfg.Embedder.open(); err != nil {
		return out, err
	}
	out.OK = true
	if offline {
		return out, nil
	}
	nats, memory, audit := cfg.engines()
	if err := doctor.ReachAll(inv.Context(), nats, memory, audit); err != nil {
		return out, err
	}
	return out, plain(*cfg, out.vectors(inv.Context(), *cfg))
}

// Checked is the answer of a check.
type Checked struct {
	OK bool `json:"ok"`
	// Vectors is the space that the memory store serves, VectorsBuilding the one under
	// construction, and VectorsPending how many texts that one lacks.
	Vectors         string `json:"vectors,omitempty"`
	VectorsBuilding string `json:"vectors_building,omitempty"`
	VectorsPending  uint64 `json:"vectors_building_pending,omitempty"`
}

// vectors reads the spaces of the memory store, if there is one.
func (c *Checked) vectors(ctx context.Context, cfg Config) error {
	var spaces store.Spaces
	switch {
	case cfg.Memory != backendFile:
		var err error
		if spaces, c.VectorsPending, err = redis.ReadSpaces(ctx, cfg.redis()); err != nil {
			return err
		}
	case absent(cfg.dataPath(memoryFile)):
		return nil
	default:
		file, err := sqlite.OpenReading(ctx, cfg.dataPath(memoryFile))
		if err != nil {
			return err
		}
		spaces = file.Spaces()
		stats, err := file.Stats(ctx)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		c.VectorsPending = stats.VectorsBuilding
	}
	if spaces.Served.Embedder.Name != "" {
		c.Vectors = spaces.Served.Embedder.String()
	}
	if spaces.Next != nil {
		c.VectorsBuilding = spaces.Next.Embedder.String()
	}
	return nil
}

// engines are those that the configuration names: NATS, the memory store and the audit
// log. One of this process is a file of the data directory.
func (c *Config) engines() (nats, memory, audit doctor.Engine) {
	of := func(key, own, file string, reach func(context.Context) error) doctor.Engine {
		if c.engine(key) == own {
			return doctor.Engine{File: c.dataPath(file)}
		}
		return doctor.Engine{URL: config.MaskURL(c.engine(key)), Reach: func(ctx context.Context) error {
			if err := reach(ctx); err != nil {
				return c.unusable(key, err)
			}
			return nil
		}}
	}
	nats = of("nats.url", natsEmbedded, natsDir, func(ctx context.Context) error {
		if err := broker.DialOne(ctx, c.NATS.URL); err != nil {
			return err
		}
		return broker.Reach(ctx, c.connection("palimpsest-check"))
	})
	memory = of("memory", backendFile, memoryFile, func(ctx context.Context) error { return redis.Reach(ctx, c.redis()) })
	audit = of("audit", backendFile, auditFile, func(ctx context.Context) error { return clickhouse.Reach(ctx, c.clickHouse()) })
	return nats, memory, audit
}
