package app

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"palimpsest/internal/auth"
	"palimpsest/internal/auth/bucket"
	"palimpsest/internal/background"
	"palimpsest/internal/broker"
	"palimpsest/internal/call"
	"palimpsest/internal/config"
	"palimpsest/internal/engine"
	"palimpsest/internal/terminal"
	"palimpsest/internal/topology"
	"palimpsest/pkg/client"
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

// StartedClient is Client for a Palimpsest that need not run: if the configuration
// is that of one process and no server is named, it is as [call.Call.ClientOnceStarted]
// says. The process outlives the directory of its caller: unless the user named a data
// directory, it uses that of the user's account.
func (inv *Invocation) StartedClient(failed func(error)) (*client.Client, error) {
	cfg, settings, err := inv.Configuration(nil)
	if err != nil {
		return nil, err
	}
	if inv.Flags().Server != "" || !cfg.NATS.Own() {
		return inv.Client()
	}
	dir, err := filepath.Abs(cfg.Data)
	if settings.Origin("data") == config.Default {
		dir, err = background.DataHome()
	}
	if err != nil {
		return nil, err
	}
	return inv.ClientOnceStarted(dir, failed)
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
	to := c.NATS.Named("palimpsest")
	if c.NATS.Own() {
		var err error
		if to, err = broker.Endpoint(c.dataPath(natsDir)); err != nil {
			return nil, engine.Faultf(err, "data: no Palimpsest runs on %s: name its directory with --data, or a NATS of your own by nats.url (%v)", c.Data, engine.Reason(err))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	conn, err := broker.Connect(ctx, to)
	if err != nil && !c.NATS.Own() {
		return nil, c.unusable("nats.url", broker.Unreached(ctx, c.NATS.URL, err))
	}
	return conn, err
}

// Broker calls do with the broker of the Palimpsest whose data directory is data, or with
// the configured one, and the topology that it should have.
func (inv *Invocation) Broker(data string, do func(jetstream.JetStream, topology.Declaration) error) error {
	cfg, _, err := inv.Configuration(map[string]string{"data": data})
	if err != nil {
		return err
	}
	conn, err := cfg.connect(inv.Context())
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := broker.NewJetStream(conn)
	if err != nil {
		return err
	}
	return do(js, cfg.NATS.Topology())
}
