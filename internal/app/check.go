package app

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/broker"
	"palimpsest/internal/config"
	"palimpsest/internal/doctor"
	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
)

// Check checks the configuration, and unless offline the servers that it names. It
// changes nothing anywhere.
func (inv *Invocation) Check(offline bool) (out doctor.Checked, err error) {
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
	spaces, pending, err := cfg.spaces(inv.Context())
	out.Describe(spaces, pending)
	return out, plain(*cfg, err)
}

// spaces returns the spaces of the memory store, if there is one, and how many texts the
// space under construction lacks.
func (c *Config) spaces(ctx context.Context) (spaces store.Spaces, pending uint64, err error) {
	if c.Memory != backendFile {
		return redis.ReadSpaces(ctx, c.redis())
	}
	if sqlitefile.Absent(c.dataPath(memoryFile)) {
		return spaces, 0, nil
	}
	file, err := sqlite.OpenReading(ctx, c.dataPath(memoryFile))
	if err != nil {
		return spaces, 0, err
	}
	stats, err := file.Stats(ctx)
	return file.Spaces(), stats.VectorsBuilding, errors.Join(err, file.Close())
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
	nats = of("nats.url", broker.OwnServer, natsDir, func(ctx context.Context) error {
		return broker.Reach(ctx, c.NATS.Named("palimpsest-check"))
	})
	memory = of("memory", backendFile, memoryFile, func(ctx context.Context) error { return redis.Reach(ctx, c.redis()) })
	audit = of("audit", backendFile, auditFile, func(ctx context.Context) error { return clickhouse.Reach(ctx, c.clickHouse()) })
	return nats, memory, audit
}

// Examine checks an installation: that of the data directory data, or of the
// configured one if data is empty. It changes nothing, and reports a failure as a
// finding.
func (inv *Invocation) Examine(data string) []doctor.Finding {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return doctor.Misconfigured(Version(), err)
	}
	of := doctor.Installation{
		Version: Version(), Server: inv.Flags().Server, Listen: cfg.HTTP.Listen, Ready: inv.ready,
		Embedder: cfg.Embedder.open, Streams: cfg.NATS.Topology(), Models: doctor.Models(cfg.LLM, openModel),
		Connect: func() (jetstream.JetStream, func(), error) {
			conn, err := cfg.connect(inv.Context())
			if err != nil {
				return nil, nil, err
			}
			js, err := broker.NewJetStream(conn)
			return js, conn.Close, err
		},
	}
	of.NATS, of.Memory, of.Audit = cfg.engines()
	if cfg.NATS.Own() {
		of.Broker = cfg.NATS.Listen
	}
	if cfg.local() {
		of.Data = cfg.Data
	}
	return doctor.Examine(inv.Context(), of)
}

func (inv *Invocation) ready(ctx context.Context) error {
	cl, err := inv.Client()
	if err != nil {
		return err
	}
	_, err = cl.Ready(ctx)
	return err
}
