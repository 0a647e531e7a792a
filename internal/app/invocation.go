package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/audit/clickhouse"
	"palimpsest/internal/auth"
	"palimpsest/internal/auth/bucket"
	"palimpsest/internal/broker"
	"palimpsest/internal/call"
	"palimpsest/internal/config"
	"palimpsest/internal/doctor"
	"palimpsest/internal/embed"
	"palimpsest/internal/engine"
	"palimpsest/internal/sqlitefile"
	"palimpsest/internal/store"
	"palimpsest/internal/store/redis"
	"palimpsest/internal/store/sqlite"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/internal/version"
)

// Flags are those of every command.
type Flags = call.Flags

// Invocation is one call of the program. Its methods load the configuration, run
// processes, and open what the configuration names.
type Invocation struct{ *call.Call }

// NewInvocation returns a call that ends when ctx does.
func NewInvocation(ctx context.Context, term terminal.Terminal, flags Flags) *Invocation {
	inv := &Invocation{}
	inv.Call = call.New(ctx, term, flags, func() (string, error) {
		cfg, _, err := inv.Configuration(nil)
		if err != nil {
			return "", err
		}
		return cfg.HTTP.Listen, nil
	})
	return inv
}

// Keys are the API keys on the broker of the Palimpsest whose data directory is
// data, or on the configured one. It takes the credential of the owner.
func (inv *Invocation) Keys(data string, do func(*auth.Keys) error) error {
	return inv.Broker(data, func(js jetstream.JetStream, _ topology.Declaration) error {
		return do(auth.NewKeys(bucket.New(js), time.Now))
	})
}

// connectLimit bounds how long a command tries to reach the broker.
const connectLimit = 10 * time.Second

// Publisher connects to the broker at url, or to the configured one if url is
// empty. The connection reconnects without end. The caller closes it.
func (inv *Invocation) Publisher(url string, options ...jetstream.JetStreamOpt) (*nats.Conn, jetstream.JetStream, error) {
	conn, err := inv.publisher(url)
	if err != nil {
		return nil, nil, err
	}
	js, err := broker.NewJetStream(conn, options...)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, js, nil
}

func (inv *Invocation) publisher(url string) (*nats.Conn, error) {
	if url == "" {
		cfg, _, err := inv.Configuration(nil)
		if err != nil {
			return nil, err
		}
		if !cfg.NATS.Own() {
			return cfg.connect(inv.Context())
		}
		url = "nats://" + cfg.NATS.Listen
	}
	conn, err := broker.ConnectPublisher(inv.Context(), url, "palimpsest publish")
	if err != nil {
		return nil, fmt.Errorf("reach NATS at %s (is Palimpsest running?): %w", config.MaskURL(url), engine.Reason(err))
	}
	return conn, nil
}

// connect connects with the owner's credential to the broker that the configuration
// names.
func (c *Config) connect(ctx context.Context) (*nats.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := c.NATS.ConnectOwner(ctx, c.dataPath(natsDir))
	switch {
	case errors.Is(err, broker.ErrNotRunning):
		err = engine.Faultf(err, "data: no Palimpsest runs on %s: name its directory with --data, or a NATS of your own by nats.url (%v)", c.Data, engine.Reason(err))
	case err != nil && !c.NATS.Own():
		err = c.unusable("nats.url", err)
	}
	return conn, err
}

// jetStream is connect for the streams; the caller calls done.
func (c *Config) jetStream(ctx context.Context) (js jetstream.JetStream, done func(), err error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	js, err = broker.NewJetStream(conn)
	return js, conn.Close, err
}

// Broker calls do with the broker of the Palimpsest whose data directory is data, or with
// the configured one, and the topology that it should have.
func (inv *Invocation) Broker(data string, do func(jetstream.JetStream, topology.Declaration) error) error {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return err
	}
	js, done, err := cfg.jetStream(inv.Context())
	if err != nil {
		return err
	}
	defer done()
	return do(js, cfg.NATS.Topology())
}

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
	if _, err := openEmbedder(cfg.Embedder); err != nil {
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
		return doctor.Misconfigured(version.String(), err)
	}
	of := doctor.Installation{
		Version: version.String(), Server: inv.Flags().Server, Listen: cfg.HTTP.Listen, Ready: inv.Ready,
		Embedder: func() (embed.Embedder, error) { return openEmbedder(cfg.Embedder) }, Streams: cfg.NATS.Topology(), Models: doctor.Models(cfg.LLM, openModel),
		Connect: func() (jetstream.JetStream, func(), error) { return cfg.jetStream(inv.Context()) },
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
